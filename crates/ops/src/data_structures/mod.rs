//! Containers of tensors: stacks and arrays that live for a step, lists that are values, and resources that outlive
//! steps: queues, barriers, staging areas, accumulators, lookup tables, readers.

use op::Op;

/// Rows of ops that no gradient passes: signature, shape function, kernel, and facts where there are any.
macro_rules! rows {
    (@facts) => { op::PLAIN };
    (@facts $facts:expr) => { $facts };
    ($($def:literal, $shape:expr, $kernel:expr $(, $facts:expr)?;)*) => {
        &[$(op::Op {
            def: $def,
            shape: $shape,
            grad: op::Grad::Stop,
            kernel: $kernel,
            facts: rows!(@facts $($facts)?),
        }),*]
    };
}

pub mod accumulator;
pub(crate) mod arithmetic;
pub mod barrier;
pub mod census;
pub(crate) mod composite;
pub mod lookup;
pub mod named;
pub(crate) mod optional;
pub(crate) mod plain_variant;
pub mod queue;
pub mod reader;
pub(crate) mod stack;
pub mod staging;
mod step_resource;
pub(crate) mod tensor_array;
pub mod tensor_list;
pub(crate) mod tensor_map;
mod waiting;

pub use self::optional::{
    Optional, optional_from_value, optional_get_value, optional_has_value, optional_none, optional_tensor,
};
pub use self::stack::{stack, stack_close, stack_pop, stack_push};
pub use self::tensor_array::{
    tensor_array, tensor_array_gather, tensor_array_read, tensor_array_scatter, tensor_array_size, tensor_array_write,
};
pub use self::tensor_map::{
    TensorMap, empty_tensor_map, tensor_map_erase, tensor_map_has_key, tensor_map_insert, tensor_map_lookup,
};

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    accumulator::OPS,
    barrier::OPS,
    composite::OPS,
    tensor_list::item::OPS,
    tensor_list::join::OPS,
    tensor_list::spread::OPS,
    lookup::access::OPS,
    lookup::table::OPS,
    staging::map_stage::OPS,
    optional::OPS,
    queue::OPS,
    queue::access::OPS,
    reader::OPS,
    reader::record_input::OPS,
    stack::OPS,
    staging::stage::OPS,
    tensor_array::OPS,
    tensor_map::OPS,
    reader::whole_file::OPS,
];
