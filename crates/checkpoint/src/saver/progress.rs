//! Progress of saves and restores, from the byte counters of the tasks.

use super::saveable::Saveable;
use graph::{DeviceSpec, Graph, Node, Output, Scope, StateRole};
use ops::raw;
use ops::state::read_variable;
use parking_lot::Mutex;
use session::{COUNTERS, Session, Task};
use status::Result;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use tensor::{DType, PartialShape, Tensor};

/// The progress of a save or a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The bytes that were written or read so far.
    pub bytes: u64,
    /// The bytes of all variables whose shapes the graph knows.
    pub total: u64,
}

/// A function that is called with the progress of a save or a restore.
pub type ProgressFn = Arc<dyn Fn(Progress) + Send + Sync>;

/// The time between two lines in the log.
const LINE: Duration = Duration::from_secs(5);

/// Logs the progress every five seconds of a save or a restore that takes that long.
pub fn log_progress() -> ProgressFn {
    let last = Mutex::new(Instant::now());
    Arc::new(move |Progress { bytes, total }| {
        let mut last = last.lock();
        if bytes > 0 && last.elapsed() >= LINE {
            tracing::info!("{} of {} MB of the checkpoint are done", bytes >> 20, total >> 20);
        } else if bytes > 0 {
            return;
        }
        *last = Instant::now();
    })
}

/// The time between two reads of the counters.
const PERIOD: Duration = Duration::from_millis(100);

/// Reads the byte counters of the tasks that save and restore, and reports them.
pub(super) struct ProgressReporter {
    report: ProgressFn,
    total: u64,
    saved: Vec<Output>,
    restored: Vec<Output>,
}

/// What a step does whose progress is reported.
#[derive(Clone, Copy)]
pub(super) enum Operation {
    Saving,
    Restoring,
}

impl ProgressReporter {
    /// Adds nodes that read the counters of the tasks on which the nodes since `first` save and restore.
    pub fn build(scope: &Scope, first: usize, saveables: &[Saveable], report: ProgressFn) -> ProgressReporter {
        let (graph, scope) = (scope.graph(), scope.named("progress"));
        let counters = |role: StateRole, counter: &str| {
            let nodes = one_for_each_task(graph, first, role);
            nodes.iter().map(|node| self::counter(&scope.beside(node), counter)).collect()
        };
        let (saved, restored) =
            (counters(StateRole::Saves, "bytes_saved"), counters(StateRole::Restores, "bytes_restored"));
        ProgressReporter { report, total: saveables.iter().map(Saveable::size).sum(), saved, restored }
    }

    /// Calls `work` and reports its progress, at least at the beginning and at the end.
    pub fn during<T>(&self, session: &Session, operation: Operation, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let counters = match operation {
            Operation::Saving => &self.saved,
            Operation::Restoring => &self.restored,
        };
        self.report(0);
        let before = read(session, counters);
        let done = thread::scope(|scope| {
            let (stop, stopped) = channel::<()>();
            if let Some(before) = before {
                scope.spawn(move || self.follow(session, counters, before, &stopped));
            }
            let done = work();
            drop(stop);
            done
        })?;
        self.report(self.total);
        Ok(done)
    }

    /// Reports every [`PERIOD`] until the work is over or a task does not answer.
    fn follow(&self, session: &Session, counters: &[Output], before: u64, stopped: &Receiver<()>) {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(PERIOD) {
            let Some(now) = read(session, counters) else { return };
            self.report(now.saturating_sub(before));
        }
    }

    fn report(&self, bytes: u64) {
        // Other clients may save at the same time, and strings are not part of the total.
        (self.report)(Progress { bytes: bytes.min(self.total), total: self.total });
    }
}

/// The sum of the counters; none on tasks that do not count, such as TensorFlow's.
fn read(session: &Session, counters: &[Output]) -> Option<u64> {
    let counts: Vec<Tensor> = session.run(counters).ok()?;
    counts.iter().map(|count| u64::try_from(count.to_scalar::<i64>().ok()?).ok()).sum()
}

/// The nodes since `first` that do this, one for each task, because all devices of a task share a counter.
fn one_for_each_task(graph: &Graph, first: usize, role: StateRole) -> Vec<Node> {
    let (root, mut tasks) = (graph.root(), Vec::new());
    let nodes = graph.def_from(first).nodes;
    let has_role = |op: &str| graph.ops().op_facts(op).state_role == Some(role);
    let nodes = nodes.iter().filter(|node| has_role(&node.op)).filter_map(|node| Node::find(&root, &node.name));
    let is_first = |node: &Node| {
        let task = DeviceSpec::parse(&node.device()).ok().and_then(|spec| Task::of_device(&spec));
        let is_new = !tasks.contains(&task);
        tasks.push(task);
        is_new
    };
    nodes.filter(is_first).collect()
}

fn counter(scope: &Scope, name: &str) -> Output {
    let handle = raw::var_handle_op(scope, DType::I64, &PartialShape::scalar()).named(name);
    let handle = handle.attr("container", COUNTERS).attr("shared_name", name).output();
    read_variable(&handle, DType::I64)
}
