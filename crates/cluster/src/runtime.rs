//! What runs the work of a task that no caller waits for, and its timers.

use status::{Result, internal};
use std::pin::Pin;
use std::time::Duration;

/// Work that gives no result.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs background work. It owns what it runs: when its owner stops it, unfinished work is dropped.
pub trait Runtime: Send + Sync {
    /// Runs work in the background.
    fn spawn(&self, work: Work);

    /// Ends after this time. The timer is cancelled when the future is dropped.
    fn sleep(&self, time: Duration) -> Work;

    /// Completes when the tasks that are ready now have run.
    fn yield_now(&self) -> Work {
        Box::pin(std::future::ready(()))
    }

    /// Runs work that may take long on this thread. A runtime whose threads move messages lets another thread do that
    /// meanwhile: a task that plans a large graph must still answer when others ask whether it is alive.
    fn run_long(&self, work: &mut dyn FnMut()) {
        work();
    }
}

/// Runs work that may take long, and gives its result.
pub(crate) fn run_long<R>(runtime: &dyn Runtime, work: impl FnOnce() -> Result<R>) -> Result<R> {
    let (mut work, mut result) = (Some(work), None);
    runtime.run_long(&mut || result = work.take().map(|work| work()));
    result.unwrap_or_else(|| Err(internal!("the runtime did not run the work it was given")))
}
