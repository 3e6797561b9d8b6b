//! Control flow, functions, and transfers between tasks.

use op::Op;

pub mod assert;
pub mod call;
pub mod device_index;
pub mod flow;
pub mod loops;
pub mod no_op;
pub mod transfer;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] =
    &[assert::OPS, call::OPS, device_index::OPS, flow::OPS, loops::OPS, no_op::OPS, transfer::OPS];
