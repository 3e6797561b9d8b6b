//! State that outlives a step: variables of both kinds, and locks.

use op::Op;

pub mod assign;
pub mod assign_variable;
pub mod await_value;
pub mod count_up_to;
pub mod handle_kind;
pub mod mutex;
pub mod read_variable;
pub mod ref_variable;
pub mod resource_gather;
pub mod scatter;
pub mod scatter_nd;
pub mod session_tensor;
pub(crate) mod target;
pub mod var_handle;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    assign::OPS,
    assign_variable::OPS,
    count_up_to::OPS,
    handle_kind::OPS,
    mutex::OPS,
    read_variable::OPS,
    ref_variable::OPS,
    resource_gather::OPS,
    scatter::OPS,
    scatter_nd::OPS,
    session_tensor::OPS,
    var_handle::OPS,
];
