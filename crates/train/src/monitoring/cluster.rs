//! Reads the counters of all tasks of a cluster, with steps of an ordinary session, and writes them as events.

use super::Sample;
use super::sample::{Scalars, per_second};
use crate::FileWriter;
use crate::session_manager::is_lost;
use graph::{AttrValue, DeviceSpec, Graph, Node, Output, Scope, StateRole};
use ops::data_structures::queue::queue_size;
use ops::raw;
use ops::state::read_variable;
use session::{COUNTERS, Feeds, GradientCounts, RunOptions, Session, Task, TaskCounts};
use status::{Error, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tensor::{DType, PartialShape, Tensor};

/// Writes the speed of a cluster, the bytes that its tasks exchange, the outcome of gradients, and the lengths of
/// queues. Counters are variables on the tasks. A step of the session reads them; its own bytes are not counted.
///
/// A task without counters, such as one of TensorFlow's, is logged once and then left out.
pub struct ClusterMetrics {
    events: Arc<FileWriter>,
    reads: Vec<CounterRead>,
    examples_per_step: Option<f64>,
    last: Option<(i64, Sample, Instant)>,
    staleness: Staleness,
}

/// The updates of other workers between the reads and the updates of steps of this worker.
#[derive(Default)]
struct Staleness {
    steps: i64,
    sum: i64,
    most: i64,
}

/// A step that reads counters.
struct CounterRead {
    source: Source,
    outputs: Vec<Output>,
    /// The counters cannot be read.
    unreadable: bool,
}

enum Source {
    Task(Task),
    Accumulator(String),
    Queue(String),
}

/// The time limit of a read.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

impl ClusterMetrics {
    /// Adds the nodes that read the counters of these tasks, of the tasks on which the graph has nodes, and of the
    /// queues and accumulators of the graph.
    pub fn new(graph: &Graph, tasks: &[Task], events: Arc<FileWriter>) -> Result<ClusterMetrics> {
        let scope = graph.root().reenter(COUNTERS).named("cluster_metrics");
        let nodes: Vec<Node> = graph.to_def()?.nodes.iter().filter_map(|node| Node::find(&scope, &node.name)).collect();
        let mut tasks = tasks.to_vec();
        tasks.extend(nodes.iter().filter_map(|node| Task::of_device(&DeviceSpec::parse(&node.device()).ok()?)));
        tasks.sort_by(|a, b| (&a.job, a.index).cmp(&(&b.job, b.index)));
        tasks.dedup();
        let mut reads: Vec<CounterRead> = tasks.into_iter().map(|task| of_task(&scope, task)).collect();
        reads.extend(nodes.iter().filter_map(|node| of_node(&scope, node)));
        graph.check()?;
        Ok(ClusterMetrics { events, reads, examples_per_step: None, last: None, staleness: Staleness::default() })
    }

    /// Sets the number of examples per step, so that examples per second are written too.
    pub fn examples_per_step(mut self, examples: f64) -> ClusterMetrics {
        self.examples_per_step = Some(examples);
        self
    }

    /// Records that a step of this worker updated the variables, after this many updates of others since it had read
    /// them.
    pub fn note_staleness(&mut self, updates: i64) {
        let Staleness { steps, sum, most } = self.staleness;
        self.staleness = Staleness { steps: steps + 1, sum: sum + updates, most: most.max(updates) };
    }

    /// Reads all counters and writes them. `step` counts the steps of all workers.
    pub fn report(&mut self, session: &Session, step: i64) -> Result<()> {
        let (sample, now) = (self.read_all(session), Instant::now());
        let last =
            self.last.as_ref().map(|(steps, sample, time)| (*steps, sample, now.saturating_duration_since(*time)));
        let mut scalars = sample.scalars(last.map(|(_, sample, time)| (sample, time)));
        if let Some((steps, _, time)) = last {
            self.speed(&mut scalars, per_second((step - steps).max(0), time));
        }
        self.staleness(&mut scalars);
        self.events.add_scalars(scalars, step)?;
        self.last = Some((step, sample, now));
        Ok(())
    }

    fn speed(&self, scalars: &mut Scalars, rate: f64) {
        scalars.push(("cluster/steps_per_sec".to_string(), rate));
        if let Some(examples) = self.examples_per_step {
            scalars.push(("cluster/examples_per_sec".to_string(), rate * examples));
        }
    }

    /// The staleness of the steps since the last report, if there were any.
    fn staleness(&mut self, scalars: &mut Scalars) {
        let Staleness { steps, sum, most } = std::mem::take(&mut self.staleness);
        if steps > 0 {
            scalars.push(("cluster/staleness_mean".to_string(), sum as f64 / steps as f64));
            scalars.push(("cluster/staleness_max".to_string(), most as f64));
        }
    }

    /// All counters that can be read.
    fn read_all(&mut self, session: &Session) -> Sample {
        let mut sample = Sample::default();
        for read in self.reads.iter_mut().filter(|read| !read.unreadable) {
            match read.run(session) {
                Ok(numbers) => read.source.add_to(&mut sample, &numbers),
                // The task may be back at the next report. Whether training continues without it is not decided here.
                Err(error) if is_lost(&error) => tracing::debug!("{} does not answer: {error}", read.source.name()),
                Err(error) => read.give_up(&error),
            }
        }
        sample
    }
}

impl CounterRead {
    fn run(&self, session: &Session) -> Result<Vec<i64>> {
        let options = RunOptions { timeout: Some(READ_TIMEOUT), ..RunOptions::default() };
        let (answers, _): (Vec<Tensor>, _) = session.run_with_options(&self.outputs[..], Feeds::new(), options)?;
        answers.iter().map(number).collect()
    }

    fn give_up(&mut self, error: &Error) {
        tracing::warn!(
            "the counters of {} cannot be read, so no metrics of it are written: {error}",
            self.source.name()
        );
        self.unreadable = true;
    }
}

impl Source {
    fn name(&self) -> String {
        match self {
            Source::Task(task) => task.to_string(),
            Source::Accumulator(name) => format!("accumulator {name}"),
            Source::Queue(name) => format!("queue {name}"),
        }
    }

    fn add_to(&self, sample: &mut Sample, numbers: &[i64]) {
        match (self, numbers) {
            (Source::Task(task), &[steps, bytes_in, bytes_out]) => {
                sample.tasks.push((task.clone(), TaskCounts { steps, bytes_in, bytes_out }));
            }
            (Source::Accumulator(name), &[accepted, stale, dropped]) => {
                sample.gradients.push(GradientCounts { name: name.clone(), accepted, stale, dropped });
            }
            (Source::Queue(name), &[length]) => sample.queues.push((name.clone(), length)),
            _ => {}
        }
    }
}

fn number(tensor: &Tensor) -> Result<i64> {
    match tensor.dtype() {
        DType::I32 => tensor.to_scalar::<i32>().map(i64::from),
        _ => tensor.to_scalar(),
    }
}

fn of_task(scope: &Scope, task: Task) -> CounterRead {
    let scope = scope.on_any_device().on(&task.to_string()).on("/device:CPU:0");
    let outputs = TaskCounts::NAMES.map(|name| counter(&scope, COUNTERS, name)).to_vec();
    CounterRead { source: Source::Task(task), outputs, unreadable: false }
}

/// The counters of a node: the length of a queue, the outcomes of an accumulator.
fn of_node(scope: &Scope, node: &Node) -> Option<CounterRead> {
    let scope = scope.beside(node);
    match node.graph().ops().op_facts(&node.op()).state_role? {
        StateRole::CreatesQueue => Some(of_queue(&scope, node)),
        StateRole::CreatesAccumulator => of_accumulator(&scope, node),
        _ => None,
    }
}

fn of_queue(scope: &Scope, node: &Node) -> CounterRead {
    let shared = text(node, "shared_name");
    let name = if shared.is_empty() { node.name() } else { shared };
    let outputs = vec![queue_size(&node.output(0).seen_from(scope))];
    CounterRead { source: Source::Queue(name), outputs, unreadable: false }
}

fn of_accumulator(scope: &Scope, node: &Node) -> Option<CounterRead> {
    let name = text(node, "shared_name");
    if !name.ends_with("/grad_accum") {
        return None;
    }
    // The counters are created together with the accumulator.
    let (scope, container) = (scope.after([node]), text(node, "container"));
    let counts = ["accepted", "stale", "dropped"].map(|fate| counter(&scope, &container, &format!("{name}/{fate}")));
    Some(CounterRead { source: Source::Accumulator(name), outputs: counts.to_vec(), unreadable: false })
}

/// Reads a counter that the server holds as a variable.
fn counter(scope: &Scope, container: &str, name: &str) -> Output {
    let handle = raw::var_handle_op(scope, DType::I64, &PartialShape::scalar());
    let handle = handle.attr("container", container).attr("shared_name", name).output();
    read_variable(&handle, DType::I64)
}

fn text(node: &Node, attr: &str) -> String {
    match node.attr(attr) {
        Ok(AttrValue::String(text)) => String::from_utf8_lossy(&text).into_owned(),
        _ => String::new(),
    }
}
