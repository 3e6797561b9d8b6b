//! Text and messages as tensors: CSV, compressed strings, examples, tensors.

use op::Op;

/// Rows of ops without a gradient: signature, shape function, kernel.
macro_rules! parsers {
    ($($def:literal, $shape:expr, $kernel:expr;)*) => {
        &[$(op::Op { def: $def, shape: $shape, grad: op::Grad::Unknown, kernel: $kernel, facts: op::PLAIN }),*]
    };
}

mod columns;
pub mod compressed;
pub mod csv;
pub mod elements;
pub mod example;
pub mod json_example;
pub mod proto;
pub mod sequence;
mod sequence_features;
pub mod single_example;
pub mod single_sequence;
mod spec;
pub mod tensor_message;
mod values;
mod zstd;

/// The tables of this family.
#[rustfmt::skip] // one per line
pub(crate) const TABLES: &[&[Op]] = &[
    compressed::OPS,
    csv::OPS,
    example::OPS,
    json_example::OPS,
    proto::OPS,
    sequence::OPS,
    single_example::OPS,
    single_sequence::OPS,
    tensor_message::OPS,
];
