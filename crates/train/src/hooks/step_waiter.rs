//! Delays the start of a worker.

use super::{read_step, step_of};
use crate::monitored::{RunArgs, RunContext, SessionRunHook};
use graph::{Graph, Output};
use status::Result;
use std::time::Duration;

/// Delays the first step until the step counter has a value, so that workers join one after another.
pub struct GlobalStepWaiter {
    until: i64,
    wait: Duration,
    counter: Option<Output>,
    started: bool,
}

impl GlobalStepWaiter {
    /// Waits until the step counter is at least `step`.
    pub fn new(step: i64) -> GlobalStepWaiter {
        GlobalStepWaiter { until: step, wait: Duration::from_millis(500), counter: None, started: false }
    }

    /// The time between two reads of the counter.
    pub fn wait(mut self, wait: Duration) -> GlobalStepWaiter {
        self.wait = wait;
        self
    }
}

impl SessionRunHook for GlobalStepWaiter {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.counter = Some(step_of(graph, "GlobalStepWaiterHook")?);
        Ok(())
    }

    fn before_run(&mut self, context: &RunContext<'_>) -> Result<RunArgs> {
        let Some(counter) = self.counter.as_ref().filter(|_| !self.started) else { return Ok(RunArgs::nothing()) };
        tracing::info!("Waiting for global step {} before starting training.", self.until);
        while !context.stop_requested() && read_step(context.session(), counter)? < self.until {
            std::thread::sleep(self.wait);
        }
        self.started = true;
        Ok(RunArgs::nothing())
    }
}
