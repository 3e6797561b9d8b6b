//! Neural networks: activations, losses, normalisation, convolutions, pooling.

use op::Op;

pub mod bias;
mod conv;
pub mod conv2d;
pub mod conv3d;
mod convolved;
pub mod cross_entropy;
pub mod depthwise;
pub mod elu;
mod geometry;
pub mod l2_loss;
mod loops;
pub mod relu;
mod rules;
pub mod softmax;
pub mod softplus;

/// The tables of this family.
#[rustfmt::skip] // one per line
pub(crate) const TABLES: &[&[Op]] = &[
    bias::OPS,
    conv2d::OPS,
    conv3d::OPS,
    cross_entropy::OPS,
    depthwise::OPS,
    elu::OPS,
    l2_loss::OPS,
    relu::OPS,
    softmax::OPS,
    softplus::OPS,
];
