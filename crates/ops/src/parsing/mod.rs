//! Text and messages as tensors: CSV, compressed strings, examples, tensors.

use op::Op;

/// Rows of ops without a gradient: signature, shape function, kernel.
macro_rules! parsers {
    ($($def:literal, $shape:expr, $kernel:expr;)*) => {
        &[$(op::Op { def: $def, shape: $shape, grad: op::Grad::Unknown, kernel: $kernel, facts: op::PLAIN }),*]
    };
}

mod columns;
pub(crate) mod compressed;
pub(crate) mod csv;
pub(crate) mod elements;
pub(crate) mod example;
pub(crate) mod json_example;
pub(crate) mod proto;
pub(crate) mod sequence;
mod sequence_features;
pub(crate) mod single_example;
pub(crate) mod single_sequence;
mod spec;
pub(crate) mod tensor_message;
mod values;
mod zstd;

pub use self::compressed::decode_compressed;
pub use self::csv::decode_csv;
pub use self::elements::{ElementParser, Features};
pub use self::json_example::decode_json_example;
pub use self::tensor_message::{parse_tensor, serialize_tensor};

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
