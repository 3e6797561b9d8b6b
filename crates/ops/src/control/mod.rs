//! Control flow, functions, and transfers between tasks.

use op::Op;

pub(crate) mod assert;
pub(crate) mod batch;
pub(crate) mod call;
pub(crate) mod clock;
pub(crate) mod collective;
pub(crate) mod debug;
pub(crate) mod device_index;
pub(crate) mod flow;
pub(crate) mod graph_def_version;
pub(crate) mod loops;
pub(crate) mod map_function;
pub(crate) mod no_op;
pub(crate) mod transfer;

pub use self::assert::{assert, print};
pub use self::device_index::device_index;
pub use self::flow::{merge_of, switch_on};
pub use self::no_op::{group, group_in, no_op};

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    assert::OPS,
    batch::OPS,
    call::OPS,
    clock::OPS,
    collective::by_attribute::OPS,
    collective::by_communicator::OPS,
    collective::by_input::OPS,
    collective::group::OPS,
    debug::OPS,
    device_index::OPS,
    flow::OPS,
    graph_def_version::OPS,
    loops::OPS,
    map_function::OPS,
    no_op::OPS,
    transfer::OPS,
];
