//! Reports the number of steps per second.

use super::{Every, Timer, read_step, stale_step, step_name, step_of};
use crate::FileWriter;
use crate::monitored::{RunArgs, RunContext, RunValues, SessionRunHook};
use graph::{Graph, Output};
use session::Session;
use status::Result;
use std::sync::Arc;

/// Reports the number of steps per second, of all workers together, as `global_step/sec`.
pub struct StepCounter {
    timer: Timer,
    events: Option<Arc<FileWriter>>,
    counter: Option<Output>,
    last: Option<i64>,
    warnings: u32,
}

/// The maximum number of warnings about a step counter that does not change.
const MAX_WARNINGS: u32 = 5;

impl StepCounter {
    /// Reports at an interval, to the log and to the events if there are any.
    pub fn new(every: Every, events: Option<Arc<FileWriter>>) -> StepCounter {
        StepCounter { timer: Timer::new(every), events, counter: None, last: None, warnings: 0 }
    }

    fn report(&self, counter: &Output, rate: f64, step: i64) -> Result<()> {
        let tag = format!("{}/sec", step_name(counter));
        tracing::info!("{tag}: {rate}");
        self.events.as_ref().map_or(Ok(()), |events| events.add_scalar(&tag, rate, step))
    }

    fn warn_if_still(&mut self, step: i64) {
        if let Some(last) = self.last.filter(|&last| last == step && self.warnings < MAX_WARNINGS) {
            self.warnings += 1;
            tracing::warn!(
                "It seems that global step (tf.train.get_global_step) has not been increased. Current value (could be \
                 stable): {step} vs previous value: {last}. You could increase the global step by passing \
                 tf.train.get_global_step() to Optimizer.apply_gradients or Optimizer.minimize."
            );
        }
        self.last = Some(step);
    }
}

impl SessionRunHook for StepCounter {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.counter = Some(step_of(graph, "StepCounterHook")?);
        Ok(())
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        Ok(self.counter.as_ref().map_or_else(RunArgs::nothing, RunArgs::fetch))
    }

    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        let Some(counter) = self.counter.clone() else { return Ok(()) };
        let stale = stale_step(values)?;
        if self.timer.is_due(stale + 1) {
            let step = read_step(context.session(), &counter)?;
            if self.timer.is_due(step)
                && let Some((steps, time)) = self.timer.done(step)
            {
                self.report(&counter, steps as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE), step)?;
            }
        }
        self.warn_if_still(stale);
        Ok(())
    }

    fn end(&mut self, _: &Session) -> Result<()> {
        self.events.as_ref().map_or(Ok(()), |events| events.flush())
    }
}
