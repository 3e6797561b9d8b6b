//! Something done again and again, at fixed times or without a pause, until a coordinator stops it.

use super::Coordinator;
use status::Result;
use std::time::{Duration, Instant};

/// A thread that repeats something until its coordinator stops it, or it fails and stops everybody.
pub struct Looper;

impl Looper {
    /// Starts a thread that repeats `work`: at the times of a grid that begins now, or without a pause if there is no
    /// interval. Work that takes longer than the interval is begun again at once until it has caught up.
    pub fn start(
        coordinator: &Coordinator,
        name: &str,
        interval: Option<Duration>,
        mut work: impl FnMut() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        coordinator.spawn(name, move |coordinator| {
            let mut grid = interval.map(|interval| Grid::new(Instant::now(), interval));
            loop {
                let pause = grid.as_mut().map_or(Duration::ZERO, |grid| grid.pause(Instant::now()));
                if coordinator.wait_for_stop(Some(pause)) {
                    return Ok(());
                }
                work()?;
            }
        })
    }
}

/// Times that lie an interval apart, whatever happens at them.
pub(crate) struct Grid {
    next: Instant,
    interval: Duration,
}

impl Grid {
    pub fn new(first: Instant, interval: Duration) -> Grid {
        Grid { next: first, interval }
    }

    /// How long it is to the next time, which is thereby over.
    pub fn pause(&mut self, now: Instant) -> Duration {
        let pause = self.next.saturating_duration_since(now);
        self.next += self.interval;
        pause
    }
}
