//! Passes inputs that a node reads in chunks to its kernel as requests to the task that sends them; notices when one is
//! dead, and traces when its last byte arrived.

use crate::node_stats::thread_number;
use crate::program::{Node, StreamedInput};
use crate::{NodeStats, Stats};
use op::{Inputs, OnOpened, OpenedTensor, RemoteTensor, StepEnv, TensorStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use tensor::{DType, Shape};

/// Whether an input that was opened is dead; then the node is dead too.
#[derive(Clone, Default)]
pub(crate) struct Dead(Option<Arc<AtomicBool>>);

impl Dead {
    /// Whether one is.
    pub fn is_dead(&self) -> bool {
        self.0.as_ref().is_some_and(|dead| dead.load(Ordering::Acquire))
    }
}

/// Adds the inputs that a node reads in chunks. `at` is the frame and the iteration it runs in.
pub(crate) fn add_remote_inputs(
    inputs: &mut Inputs,
    node: &Node,
    at: (u64, u64),
    env: &Arc<StepEnv>,
    stats: Option<&Arc<Stats>>,
) -> Dead {
    if node.streamed_inputs.is_empty() {
        return Dead::default();
    }
    let dead = Arc::new(AtomicBool::new(false));
    for input in &node.streamed_inputs {
        let (key, env, dead) = (input.transfer.key(at.0, at.1), env.clone(), dead.clone());
        let trace = stats.map(|stats| Trace::new(stats, input, node));
        let open = move |done: OnOpened| open(&key, &env, dead, trace, done);
        inputs.insert_remote(input.index, RemoteTensor::new(open));
    }
    Dead(Some(dead))
}

fn open(key: &str, env: &StepEnv, dead: Arc<AtomicBool>, trace: Option<Trace>, done: OnOpened) {
    let start = trace.as_ref().map_or(0, |trace| trace.stats.now());
    let opened = move |opened| {
        if let Ok(OpenedTensor::Whole((_, true))) = opened {
            dead.store(true, Ordering::Release);
            return done(opened);
        }
        done(match trace {
            Some(trace) => opened.map(|opened| trace.follow(opened, start)),
            None => opened,
        });
    };
    env.rendezvous.open(key, Box::new(opened));
}

/// Records when a tensor has arrived, in the name of the Recv that was removed.
struct Trace {
    stats: Arc<Stats>,
    name: Arc<str>,
    op: Arc<str>,
    device: Arc<str>,
    scheduled: u64,
}

impl Trace {
    fn new(stats: &Arc<Stats>, input: &StreamedInput, node: &Node) -> Trace {
        let (name, op, device) = (input.name.clone(), input.op.clone(), node.device.clone());
        Trace { stats: stats.clone(), name, op, device, scheduled: stats.now() }
    }

    /// Records a tensor when its last byte is here.
    fn follow(self, opened: OpenedTensor, start: u64) -> OpenedTensor {
        match opened {
            OpenedTensor::Whole((tensor, dead)) => {
                self.record(start, tensor.dtype(), tensor.shape());
                OpenedTensor::Whole((tensor, dead))
            }
            OpenedTensor::Stream(mut stream) => {
                let (dtype, shape) = (stream.dtype(), stream.shape().clone());
                OpenedTensor::Stream(TensorStream::new(dtype, shape, move |cx| {
                    let chunk = stream.poll_next(cx);
                    if let Poll::Ready(Ok(None)) = chunk {
                        self.record(start, stream.dtype(), stream.shape());
                    }
                    chunk
                }))
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
