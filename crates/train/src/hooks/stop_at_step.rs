//! Stops training at a step.

use super::{read_step, stale_step, step_of};
use crate::monitored::{RunArgs, RunContext, RunValues, SessionContext, SessionRunHook};
use graph::{Graph, Output};
use status::Result;

/// Stops training at a value of the step counter, or after a number of steps of all workers.
pub struct StopAtStep {
    steps: Option<i64>,
    last: Option<i64>,
    counter: Option<Output>,
}

impl StopAtStep {
    /// Stops when the step counter is at least `step`.
    pub fn last_step(step: i64) -> StopAtStep {
        StopAtStep { steps: None, last: Some(step), counter: None }
    }

    /// Stops this many steps after the value of the step counter when the session was created.
    pub fn num_steps(steps: i64) -> StopAtStep {
        StopAtStep { steps: Some(steps), last: None, counter: None }
    }
}

impl SessionRunHook for StopAtStep {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.counter = Some(step_of(graph, "StopAtStepHook")?);
        Ok(())
    }

    fn after_create_session(&mut self, context: &SessionContext<'_>) -> Result<()> {
        if let (None, Some(steps), Some(counter)) = (self.last, self.steps, &self.counter) {
            self.last = Some(read_step(context.session(), counter)?.saturating_add(steps));
        }
        Ok(())
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        Ok(self.counter.as_ref().map_or_else(RunArgs::nothing, RunArgs::fetch))
    }

    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        let (Some(last), Some(counter)) = (self.last, &self.counter) else { return Ok(()) };
        // The step read the counter before, after or during the update, so read it again when it may be time to stop.
        if stale_step(values)? + 1 >= last && read_step(context.session(), counter)? >= last {
            context.request_stop();
        }
        Ok(())
    }
}
