//! Control flow, functions, and transfers between tasks.

use op::Op;

pub mod assert;
pub mod batch;
pub mod call;
pub mod clock;
pub mod debug;
pub mod device_index;
pub mod flow;
pub mod loops;
pub mod map_function;
pub mod no_op;
pub mod transfer;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    assert::OPS,
    batch::OPS,
    call::OPS,
    clock::OPS,
    debug::OPS,
    device_index::OPS,
    flow::OPS,
    loops::OPS,
    map_function::OPS,
    no_op::OPS,
    transfer::OPS,
];
