//! Records in the trace of a step when a node ran and what it produced.

use crate::core::Produced;
use crate::program::Node;
use op::{NodeStats, Stats, Value};
use std::sync::atomic::Ordering;
use tensor::{DType, Shape};

/// Records a node that ends now. `scheduled` is when it became ready, `start` when it began to run.
pub(crate) fn record(stats: &Stats, node: &Node, scheduled: u64, start: u64, produced: Option<&Produced>) {
    if node.inlined {
        return;
    }
    let described = |value: &Option<Value>| match value {
        Some(Value::Tensor(tensor)) => Some((tensor.dtype(), tensor.shape().clone())),
        _ => None,
    };
    let outputs: Vec<(DType, Shape)> =
        produced.map(|values| values.iter().filter_map(described).collect()).unwrap_or_default();
    stats.add(NodeStats {
        name: node.name.clone(),
        op: node.op.clone(),
        device: node.device.clone(),
        scheduled,
        start,
        end: stats.now(),
        outputs,
        thread: thread_number(),
    });
}

/// A small number that identifies this thread in traces.
pub(crate) fn thread_number() -> u32 {
    use std::cell::Cell;
    use std::sync::atomic::AtomicU32;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local!(static OWN: Cell<Option<u32>> = const { Cell::new(None) });
    OWN.with(|own| {
        let number = own.get().unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed));
        own.set(Some(number));
        number
    })
}
