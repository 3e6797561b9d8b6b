//! Neural networks: activations, losses, normalisation, convolutions, pooling.

pub(crate) use rules::{copied, image_size_of, shape_of};

use op::Op;

pub mod approx_top_k;
pub mod avg_pool;
pub mod batch_norm;
pub mod batch_norm_grad;
pub mod bias;
pub mod block_lstm;
pub(crate) mod conv;
pub mod conv2d;
pub mod conv3d;
pub mod conv_nd;
mod conv_rules;
mod convolved;
pub mod cross_entropy;
pub mod ctc_decoder;
pub mod ctc_loss;
pub mod depthwise;
pub mod dilation;
pub mod elu;
pub mod fractional_pool;
pub mod fused_conv;
pub mod fused_image_conv;
pub(crate) mod geometry;
pub mod global_norm;
pub mod gru_cell;
pub mod isotonic;
pub mod l2_loss;
mod loops;
pub mod lrn;
mod lstm;
pub mod lstm_cell;
mod lstm_tensors;
pub mod max_pool;
pub mod max_pool_argmax;
pub mod max_pool_grad;
pub mod no_kernels;
pub(crate) mod pool;
pub mod pool3d;
mod pool_rules;
pub mod relu;
mod rules;
pub mod softmax;
pub mod softplus;

/// The tables of this family.
#[rustfmt::skip] // one per line
pub(crate) const TABLES: &[&[Op]] = &[
    approx_top_k::OPS,
    avg_pool::OPS,
    batch_norm::OPS,
    batch_norm_grad::OPS,
    bias::OPS,
    block_lstm::OPS,
    conv2d::OPS,
    conv3d::OPS,
    conv_nd::OPS,
    cross_entropy::OPS,
    ctc_decoder::OPS,
    ctc_loss::OPS,
    depthwise::OPS,
    dilation::OPS,
    elu::OPS,
    fractional_pool::OPS,
    fused_conv::OPS,
    fused_image_conv::OPS,
    global_norm::OPS,
    gru_cell::OPS,
    isotonic::OPS,
    l2_loss::OPS,
    lrn::OPS,
    lstm_cell::OPS,
    max_pool::OPS,
    max_pool_argmax::OPS,
    max_pool_grad::OPS,
    no_kernels::OPS,
    pool3d::OPS,
    relu::OPS,
    softmax::OPS,
    softplus::OPS,
];
