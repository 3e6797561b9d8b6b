//! How far a save or a restore is, as the tasks that do it count.

use super::saveable::Saveable;
use graph::{DeviceSpec, Graph, Node, Output, Scope};
use ops::names::{RESTORE_V2, SAVE_V2};
use ops::raw;
use ops::state::read_variable::read_variable;
use parking_lot::Mutex;
use session::{COUNTERS, Session, Task};
use status::Result;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use tensor::{DType, PartialShape, Tensor};

/// How far a save or a restore is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that were written or read.
    pub bytes: u64,
    /// Bytes that there are in all, of variables whose shapes the graph knows.
    pub total: u64,
}

/// A function that is called with the progress of a save or a restore.
pub type ProgressFn = Arc<dyn Fn(Progress) + Send + Sync>;

/// How often the log tells.
const LINE: Duration = Duration::from_secs(5);

/// Tells the log, every five seconds of a save or a restore that takes that long.
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

/// How often the tasks are asked.
const PERIOD: Duration = Duration::from_millis(100);

/// Asks the tasks that save and restore how far they are, and tells.
pub(super) struct Watcher {
    tell: ProgressFn,
    total: u64,
    saved: Vec<Output>,
    restored: Vec<Output>,
}

/// What is watched.
#[derive(Clone, Copy)]
pub(super) enum Doing {
    Saving,
    Restoring,
}

impl Watcher {
    /// Adds nodes that read the counters of the tasks on which the nodes since `first` save and restore.
    pub fn build(scope: &Scope, first: usize, saveables: &[Saveable], tell: ProgressFn) -> Watcher {
        let (graph, scope) = (scope.graph(), scope.named("progress"));
        let counters = |op: &str, counter: &str| {
            let nodes = one_for_each_task(graph, first, op);
            nodes.iter().map(|node| self::counter(&scope.beside(node), counter)).collect()
        };
        let (saved, restored) = (counters(SAVE_V2, "bytes_saved"), counters(RESTORE_V2, "bytes_restored"));
        Watcher { tell, total: saveables.iter().map(size).sum(), saved, restored }
    }

    /// Does `work` and tells how far it is, at least at its beginning and its end.
    pub fn during<T>(&self, session: &Session, doing: Doing, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let counters = match doing {
            Doing::Saving => &self.saved,
            Doing::Restoring => &self.restored,
        };
        self.say(0);
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
        self.say(self.total);
        Ok(done)
    }

    /// Asks every so often until the work is over, or somebody does not answer.
    fn follow(&self, session: &Session, counters: &[Output], before: u64, stopped: &Receiver<()>) {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(PERIOD) {
            let Some(now) = read(session, counters) else { return };
            self.say(now.saturating_sub(before));
        }
    }

    fn say(&self, bytes: u64) {
        // Others may save at the same time, and strings are not part of the total.
        (self.tell)(Progress { bytes: bytes.min(self.total), total: self.total });
    }
}

/// The sum of the counters; none on tasks that do not count, such as TensorFlow's.
fn read(session: &Session, counters: &[Output]) -> Option<u64> {
    let counts: Vec<Tensor> = session.run(counters).ok()?;
    counts.iter().map(|count| u64::try_from(count.to_scalar::<i64>().ok()?).ok()).sum()
}

/// Nodes of an op since `first`, one for each task: all devices of a task count together.
fn one_for_each_task(graph: &Graph, first: usize, op: &str) -> Vec<Node> {
    let (root, mut tasks) = (graph.root(), Vec::new());
    let nodes = graph.def_from(first).nodes;
    let nodes = nodes.iter().filter(|node| node.op == op).filter_map(|node| Node::find(&root, &node.name));
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

/// The bytes of a variable, as far as they are known.
fn size(saveable: &Saveable) -> u64 {
    let (shape, dtype) = (saveable.variable.shape(), saveable.variable.dtype());
    shape.known().map_or(0, |shape| (shape.elements() * dtype.size()) as u64)
}
