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
pub mod arithmetic;
pub mod barrier;
pub mod census;
pub mod composite;
pub mod lookup;
pub mod named;
pub mod optional;
pub mod plain_variant;
pub mod queue;
pub mod reader;
pub mod stack;
pub mod staging;
mod step_resource;
pub mod tensor_array;
pub mod tensor_list;
pub mod tensor_map;
mod waiting;

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
