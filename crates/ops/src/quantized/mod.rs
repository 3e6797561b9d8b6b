//! Ops on quantized integers, which stand for real numbers of a range.

#[macro_use]
mod level;
mod args;
mod dimension_numbers;
mod uniform_scale;

pub mod activation;
pub mod arithmetic;
pub mod batch_norm;
pub mod bias;
pub mod concat;
pub mod conv;
pub mod instance_norm;
pub mod matmul;
pub mod per_channel;
pub mod pool;
pub mod quantize;
pub mod requantize;
pub mod reshape;
pub mod resize;
pub mod uniform;
pub mod uniform_add;
pub mod uniform_conv;
pub mod uniform_dot;

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
