//! Repeats a function on a thread, at fixed times or without a pause, until a coordinator stops it.

use super::Coordinator;
use status::Result;
use std::time::{Duration, Instant};

/// A thread that repeats a function until its coordinator stops. If the function fails, a stop is requested.
pub struct Looper;

impl Looper {
    /// Starts a thread that repeats `work`: at fixed times that are `interval` apart, or without a pause if there is
    /// no interval. If `work` takes longer than the interval, the next calls follow without a pause until they are on
    /// time again.
    pub fn start(
        coordinator: &Coordinator,
        name: &str,
        interval: Option<Duration>,
        mut work: impl FnMut() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        coordinator.spawn(name, move |coordinator| {
            let mut schedule = interval.map(|interval| Schedule::new(Instant::now(), interval));
            loop {
                let pause = schedule.as_mut().map_or(Duration::ZERO, |schedule| schedule.pause(Instant::now()));
                if coordinator.wait_for_stop(Some(pause)) {
                    return Ok(());
                }
                work()?;
            }
        })
    }
}

/// Times that are an interval apart, independent of how long the work takes.
pub(crate) struct Schedule {
    next: Instant,
    interval: Duration,
}

impl Schedule {
    pub fn new(first: Instant, interval: Duration) -> Schedule {
        Schedule { next: first, interval }
    }

    /// The time until the next call; advances to the one after it.
    pub fn pause(&mut self, now: Instant) -> Duration {
        let pause = self.next.saturating_duration_since(now);
        self.next += self.interval;
        pause
    }
}
