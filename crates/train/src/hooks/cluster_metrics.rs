//! Writes metrics of the cluster at an interval.

use super::{Every, Timer, read_step, stale_step, step_of};
use crate::monitored::{RunArgs, RunContext, RunValues, SessionRunHook};
use crate::{FileWriter, get_global_step, monitoring};
use checkpoint::step_number;
use graph::{Graph, Node, Output, StateRole, TensorName};
use session::{COUNTERS, ClusterSpec, Session, Task};
use status::Result;
use std::sync::Arc;
use tensor::Tensor;

/// Writes metrics of the cluster at an interval: steps and examples per second, bytes in and out of each task,
/// accepted and dropped gradients, the staleness of the gradients of this worker, lengths of queues. The tags are
/// those of [`monitoring`].
pub struct ClusterMetrics {
    timer: Timer,
    events: Arc<FileWriter>,
    tasks: Vec<Task>,
    examples_per_step: Option<f64>,
    counter: Option<Output>,
    metrics: Option<monitoring::ClusterMetrics>,
    updated: Option<Updated>,
}

/// The step counter after the update of a step.
struct Updated {
    update: Node,
    value: Output,
    /// The last fetches of the user, and whether they include the update.
    asked: Option<(Vec<String>, bool)>,
}

impl Updated {
    /// The only node that increments the step counter. If there are several, none is found, since the value after one
    /// of them is unknown.
    fn find(graph: &Graph) -> Option<Updated> {
        let step = get_global_step(graph)?;
        let handle = step.handle().node().name();
        let is_update = |node: &Node| {
            graph.ops().op_facts(&node.op()).state_role == Some(StateRole::AddsToVariable)
                && node.def().inputs.first().is_some_and(|input| TensorName::parse(input).node == handle)
        };
        let (root, def) = (graph.root(), graph.to_def().ok()?);
        let mut updates = def.nodes.iter().filter_map(|node| Node::find(&root, &node.name)).filter(is_update);
        let (update, None) = (updates.next()?, updates.next()) else { return None };
        let value = step.read(&root.reenter(COUNTERS).after([&update]));
        Some(Updated { update, value, asked: None })
    }

    /// Whether the fetches of the user include the update.
    fn is_part_of(&mut self, args: &RunArgs) -> bool {
        let asked: Vec<String> = args.fetches.iter().map(|fetch| fetch.node().to_string()).collect();
        match &self.asked {
            Some((known, is_part)) if *known == asked => *is_part,
            _ => {
                let (root, update) = (self.update.graph().root(), self.update.name());
                let nodes = asked.iter().filter_map(|name| Node::find(&root, name));
                let is_part = nodes.flat_map(|node| node.with_ancestors()).any(|node| node.name() == update);
                self.asked = Some((asked, is_part));
                is_part
            }
        }
    }
}

impl ClusterMetrics {
    /// Writes metrics of the tasks on which the graph has nodes.
    pub fn new(every: Every, events: Arc<FileWriter>) -> ClusterMetrics {
        let timer = Timer::new(every);
        let (tasks, examples_per_step) = (Vec::new(), None);
        ClusterMetrics { timer, events, tasks, examples_per_step, counter: None, metrics: None, updated: None }
    }

    /// Writes metrics of all tasks of this cluster.
    pub fn cluster(mut self, cluster: &ClusterSpec) -> ClusterMetrics {
        self.tasks = cluster.tasks().collect();
        self
    }

    /// Sets the number of examples per step, so that examples per second are written too.
    pub fn examples_per_step(mut self, examples: f64) -> ClusterMetrics {
        self.examples_per_step = Some(examples);
        self
    }
}

impl SessionRunHook for ClusterMetrics {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.counter = Some(step_of(graph, "ClusterMetrics")?);
        self.updated = Updated::find(graph);
        let metrics = monitoring::ClusterMetrics::new(graph, &self.tasks, self.events.clone())?;
        self.metrics = Some(match self.examples_per_step {
            Some(examples) => metrics.examples_per_step(examples),
            None => metrics,
        });
        Ok(())
    }

    fn before_run(&mut self, context: &RunContext<'_>) -> Result<RunArgs> {
        let Some(counter) = &self.counter else { return Ok(RunArgs::nothing()) };
        let Some(updated) = &mut self.updated else { return Ok(RunArgs::fetch(counter)) };
        Ok(match updated.is_part_of(context.original_args()) {
            true => RunArgs::fetch((counter, &updated.value)),
            false => RunArgs::fetch(counter),
        })
    }

    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        let (Some(counter), Some(metrics)) = (&self.counter, &mut self.metrics) else { return Ok(()) };
        if values.len() > 1 {
            // The own update is one of those since the read.
            let updated = step_number(&values.get::<Tensor>(1)?)?;
            metrics.note_staleness((updated - stale_step(values)? - 1).max(0));
        }
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
