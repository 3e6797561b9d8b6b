//! Reports what a cluster does, every so often.

use super::{Every, Timer, read_step, stale_step, step_of};
use crate::monitored::{RunArgs, RunContext, RunValues, SessionRunHook};
use crate::{FileWriter, metrics};
use graph::{Graph, Output};
use session::{ClusterSpec, Session, Task};
use status::Result;
use std::sync::Arc;

/// Writes what a cluster does every so often: steps and examples per second, bytes in and out of each task, what
/// became of gradients, lengths of queues. The tags are those of [`metrics`].
pub struct ClusterMetrics {
    timer: Timer,
    events: Arc<FileWriter>,
    tasks: Vec<Task>,
    examples_per_step: Option<f64>,
    counter: Option<Output>,
    metrics: Option<metrics::ClusterMetrics>,
}

impl ClusterMetrics {
    /// Every so often, about the tasks on which the graph has nodes.
    pub fn new(every: Every, events: Arc<FileWriter>) -> ClusterMetrics {
        let timer = Timer::new(every);
        ClusterMetrics { timer, events, tasks: Vec::new(), examples_per_step: None, counter: None, metrics: None }
    }

    /// About all tasks of this cluster.
    pub fn cluster(mut self, cluster: &ClusterSpec) -> ClusterMetrics {
        self.tasks = cluster.tasks().collect();
        self
    }

    /// How many examples a step learns from: then examples per second are reported too.
    pub fn examples_per_step(mut self, examples: f64) -> ClusterMetrics {
        self.examples_per_step = Some(examples);
        self
    }
}

impl SessionRunHook for ClusterMetrics {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.counter = Some(step_of(graph, "ClusterMetrics")?);
        let metrics = metrics::ClusterMetrics::new(graph, &self.tasks, self.events.clone())?;
        self.metrics = Some(match self.examples_per_step {
            Some(examples) => metrics.examples_per_step(examples),
            None => metrics,
        });
        Ok(())
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        Ok(self.counter.as_ref().map_or_else(RunArgs::nothing, RunArgs::fetch))
    }

    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        let (Some(counter), Some(metrics)) = (&self.counter, &mut self.metrics) else { return Ok(()) };
        if self.timer.is_due(stale_step(values)? + 1) {
            let step = read_step(context.session(), counter)?;
            if self.timer.is_due(step) {
                self.timer.done(step);
                metrics.report(context.session(), step)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, _: &Session) -> Result<()> {
        self.events.flush()
    }
}
