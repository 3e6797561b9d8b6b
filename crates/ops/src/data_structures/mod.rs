//! Containers of tensors: stacks and arrays of a step, lists that are values, and what outlives steps: queues,
//! barriers, staging areas, accumulators.

use op::Op;

/// Rows of ops that no gradient passes: signature, shape function, kernel.
macro_rules! rows {
    ($($def:literal, $shape:expr, $kernel:expr;)*) => {
        &[$(op::Op { def: $def, shape: $shape, grad: op::Grad::Stop, kernel: $kernel }),*]
    };
}

pub mod accumulator;
mod accumulator_roll;
mod accumulator_state;
pub mod arithmetic;
pub mod barrier;
mod barrier_state;
pub mod census;
pub mod list_item;
pub mod list_join;
pub mod list_spread;
pub mod lookup_access;
mod lookup_dense;
mod lookup_file;
mod lookup_map;
mod lookup_state;
pub mod lookup_table;
pub mod map_stage;
pub(crate) mod named;
pub mod optional;
mod padding;
pub mod plain_variant;
pub mod queue;
pub mod queue_access;
mod queue_items;
mod queue_spec;
mod queue_state;
mod queue_tokens;
pub mod reader;
mod reader_format;
mod reader_state;
pub mod record_input;
pub mod stack;
pub mod stage;
mod staging;
mod step_resource;
pub mod tensor_array;
mod tensor_array_kernels;
mod tensor_array_slots;
pub mod tensor_list;
mod waiting;
pub mod whole_file;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    accumulator::OPS,
    barrier::OPS,
    list_item::OPS,
    list_join::OPS,
    list_spread::OPS,
    lookup_access::OPS,
    lookup_table::OPS,
    map_stage::OPS,
    optional::OPS,
    queue::OPS,
    queue_access::OPS,
    reader::OPS,
    record_input::OPS,
    stack::OPS,
    stage::OPS,
    tensor_array::OPS,
    whole_file::OPS,
];
