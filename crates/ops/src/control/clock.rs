//! The time: Timestamp, GetDeadline.

use op::shapes::scalar;
use op::{Grad, Op, PLAIN, source};
use status::invalid;
use std::time::{SystemTime, UNIX_EPOCH};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Timestamp() -> ts: double; stateful",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: |_| Ok(source(|_| Ok(Tensor::scalar(micros_since_epoch() as f64 / 1e6))).free()),
        facts: PLAIN,
    },
    // A step has no deadline that kernels know of: the client withdraws a step that takes too long.
    Op {
        def: "GetDeadline() -> deadline_from_epoch_micros: int64",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: |_| Ok(source(|_| Err(invalid!("Deadline has not ben set."))).free()), // with TensorFlow's spelling
        facts: PLAIN,
    },
];

/// Microseconds since 1970.
pub(super) fn micros_since_epoch() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
