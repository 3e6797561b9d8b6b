//! Batching: several steps wait for each other, and one run does the work of all.

mod function;
mod queue;
mod split;
mod task;
mod timers;
mod unbatch;
mod unbatch_grad;

use op::Op;

pub(crate) const OPS: &[Op] = &[task::BATCH, function::BATCH_FUNCTION, unbatch::UNBATCH, unbatch_grad::UNBATCH_GRAD];
