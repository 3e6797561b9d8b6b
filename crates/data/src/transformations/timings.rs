//! How long several ways to the same elements take.

use std::time::Duration;

/// The times of the experiments with each way.
pub(crate) struct Timings(Vec<Vec<Duration>>);

/// More experiments do not change the choice.
const KEPT: usize = 1024;

impl Timings {
    /// No experiments with `count` ways.
    pub(crate) fn new(count: usize) -> Timings {
        Timings(vec![Vec::new(); count])
    }

    /// Adds an experiment with one way.
    pub(crate) fn add(&mut self, way: usize, time: Duration) {
        if let Some(times) = self.0.get_mut(way).filter(|times| times.len() < KEPT) {
            times.push(time);
        }
    }

    /// The way with the shortest time that nine of ten experiments did not exceed; the last of several.
    pub(crate) fn fastest(&self) -> usize {
        let times = self.0.iter().map(|times| percentile(times)).enumerate();
        times.min_by_key(|&(way, time)| (time, usize::MAX - way)).map_or(0, |(way, _)| way)
    }
}

fn percentile(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() * 9 / 10).or(sorted.last()).copied().unwrap_or_default()
}
