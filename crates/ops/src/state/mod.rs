//! State that outlives a step: variables of both kinds, and locks.

use op::Op;

pub(crate) mod assign;
pub(crate) mod assign_variable;
pub(crate) mod await_value;
pub(crate) mod count_up_to;
pub(crate) mod handle_kind;
pub(crate) mod mutex;
pub(crate) mod read_variable;
pub(crate) mod ref_variable;
pub(crate) mod resource_gather;
pub(crate) mod scatter;
pub(crate) mod scatter_nd;
pub(crate) mod session_tensor;
pub(crate) mod target;
pub(crate) mod var_handle;

pub use self::assign::{assign, assign_add, assign_any_shape, assign_sub};
pub use self::assign_variable::{assign_add_variable, assign_sub_variable, assign_variable};
pub use self::await_value::WAIT;
pub use self::count_up_to::{count_up_to, resource_count_up_to};
pub use self::mutex::{mutex, mutex_lock};
pub use self::read_variable::read_variable;
pub use self::ref_variable::{destroy_temporary_variable, is_variable_initialized, temporary_variable, variable};
pub use self::resource_gather::{resource_gather, resource_gather_nd};
pub use self::scatter::{Update, resource_scatter, scatter};
pub use self::scatter_nd::{resource_scatter_nd_add, resource_scatter_nd_update, scatter_nd_add, scatter_nd_update};
pub use self::var_handle::{var_handle, var_is_initialized, variable_shape};

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
