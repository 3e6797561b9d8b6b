//! Ops on quantized integers, which stand for real numbers of a range.

#[macro_use]
mod level;
mod args;
mod dimension_numbers;
mod uniform_scale;

pub(crate) mod activation;
pub(crate) mod arithmetic;
pub(crate) mod batch_norm;
pub(crate) mod bias;
pub(crate) mod concat;
pub(crate) mod conv;
pub(crate) mod instance_norm;
pub(crate) mod matmul;
pub(crate) mod per_channel;
pub(crate) mod pool;
pub(crate) mod quantize;
pub(crate) mod requantize;
pub(crate) mod reshape;
pub(crate) mod resize;
pub(crate) mod uniform;
pub(crate) mod uniform_add;
pub(crate) mod uniform_conv;
pub(crate) mod uniform_dot;

pub use self::quantize::{dequantize, quantize};

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    activation::OPS,
    arithmetic::OPS,
    batch_norm::OPS,
    bias::OPS,
    concat::OPS,
    conv::OPS,
    instance_norm::OPS,
    matmul::OPS,
    per_channel::OPS,
    pool::OPS,
    quantize::OPS,
    requantize::OPS,
    reshape::OPS,
    resize::OPS,
    uniform::OPS,
    uniform_add::OPS,
    uniform_conv::OPS,
    uniform_dot::OPS,
];
