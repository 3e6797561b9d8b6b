//! Feeds every step from a function.

use crate::monitored::{RunArgs, RunContext, SessionRunHook};
use session::Feeds;
use status::Result;

/// Feeds every step with the result of a function. If the function gives `OutOfRange`, training ends without an
/// error.
pub struct FeedFn<F>(F);

impl<F: FnMut() -> Result<Feeds> + Send> FeedFn<F> {
    /// Calls `function` before every step.
    pub fn new(function: F) -> FeedFn<F> {
        FeedFn(function)
    }
}

impl<F: FnMut() -> Result<Feeds> + Send> SessionRunHook for FeedFn<F> {
    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        Ok(RunArgs::nothing().feeds((self.0)()?))
    }
}
