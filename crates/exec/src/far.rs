//! Inputs that a node receives from other tasks while it runs.

use crate::node_stats::thread_number;
use crate::program::{Node, Pull};
use crate::{NodeStats, Stats};
use op::{Far, Inputs, Opened, Opening, Pieces, StepEnv};
use parking_lot::Mutex;
use status::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tensor::{Bytes, DType, Shape};

/// Whether one of the inputs was found to be dead after it was opened. Then the node is dead too.
#[derive(Clone, Default)]
pub(crate) struct Dead(Option<Arc<AtomicBool>>);

impl Dead {
    /// True if an input was dead.
    pub fn is_dead(&self) -> bool {
        self.0.as_ref().is_some_and(|dead| dead.load(Ordering::Acquire))
    }
}

/// Adds the inputs that a node receives itself. `at` is the frame and the iteration in which the node runs.
pub(crate) fn add_far(
    inputs: &mut Inputs,
    node: &Node,
    at: (u64, u64),
    env: &Arc<StepEnv>,
    stats: Option<&Arc<Stats>>,
) -> Dead {
    if node.pulls.is_empty() {
        return Dead::default();
    }
    let dead = Arc::new(AtomicBool::new(false));
    for pull in &node.pulls {
        let (key, env, dead) = (pull.transfer.key(at.0, at.1), env.clone(), dead.clone());
        let trace = stats.map(|stats| Trace::new(stats, pull, node));
        inputs.insert_far(pull.place, Far::new(move |done| open(&key, &env, dead, trace, done)));
    }
    Dead(Some(dead))
}

fn open(key: &str, env: &StepEnv, dead: Arc<AtomicBool>, trace: Option<Trace>, done: Opening) {
    let start = trace.as_ref().map_or(0, |trace| trace.stats.now());
    let opened = move |opened: Result<Option<Opened>>| {
        let opened = match (opened, trace) {
            (Ok(None), _) => {
                dead.store(true, Ordering::Release);
                Ok(None)
            }
            (Ok(Some(opened)), Some(trace)) => Ok(Some(trace.follow(opened, start))),
            (opened, _) => opened,
        };
        done(opened);
    };
    env.rendezvous.open(key, Box::new(opened));
}

/// Records in the trace of the step when a value arrived.
struct Trace {
    stats: Arc<Stats>,
    name: Arc<str>,
    op: Arc<str>,
    device: Arc<str>,
    scheduled: u64,
}

impl Trace {
    fn new(stats: &Arc<Stats>, pull: &Pull, node: &Node) -> Trace {
        let (name, op, device) = (pull.name.clone(), pull.op.clone(), node.device.clone());
        Trace { stats: stats.clone(), name, op, device, scheduled: stats.now() }
    }

    /// Records a value when its last byte has arrived.
    fn follow(self, opened: Opened, start: u64) -> Opened {
        match opened {
            Opened::Whole(tensor) => {
                self.record(start, tensor.dtype(), tensor.shape());
                Opened::Whole(tensor)
            }
            Opened::Pieces(dtype, shape, pieces) => {
                let traced = Traced { pieces, trace: Mutex::new(Some((self, start, dtype, shape.clone()))).into() };
                Opened::Pieces(dtype, shape, Arc::new(traced))
            }
        }
    }

    fn record(&self, start: u64, dtype: DType, shape: &Shape) {
        self.stats.add(NodeStats {
            name: self.name.clone(),
            op: self.op.clone(),
            device: self.device.clone(),
            scheduled: self.scheduled,
            start,
            end: self.stats.now(),
            outputs: vec![(dtype, shape.clone())],
            thread: thread_number(),
        });
    }
}

/// Pieces whose arrival is recorded at the end.
struct Traced {
    pieces: Arc<dyn Pieces>,
    trace: Arc<Mutex<Option<(Trace, u64, DType, Shape)>>>,
}

impl Pieces for Traced {
    fn next(&self, done: Box<dyn FnOnce(Result<Option<Bytes>>) + Send>) {
        let trace = self.trace.clone();
        self.pieces.next(Box::new(move |piece| {
            if let Ok(None) = piece
                && let Some((trace, start, dtype, shape)) = trace.lock().take()
            {
                trace.record(start, dtype, &shape);
            }
            done(piece);
        }));
    }
}
