//! Neural networks: activations, losses, normalisation, convolutions, pooling.

pub(crate) use rules::{copied, image_size_of, shape_of};

use op::Op;

pub(crate) mod approx_top_k;
pub(crate) mod avg_pool;
pub(crate) mod batch_norm;
pub(crate) mod batch_norm_grad;
pub(crate) mod bias;
pub(crate) mod block_lstm;
pub(crate) mod conv;
pub(crate) mod conv2d;
pub(crate) mod conv3d;
pub(crate) mod conv_nd;
mod conv_rules;
mod convolved;
pub(crate) mod cross_entropy;
pub(crate) mod ctc_decoder;
pub(crate) mod ctc_loss;
pub(crate) mod depthwise;
pub(crate) mod dilation;
pub(crate) mod elu;
pub(crate) mod fractional_pool;
pub(crate) mod fused_conv;
pub(crate) mod fused_image_conv;
pub(crate) mod geometry;
pub(crate) mod global_norm;
pub(crate) mod gru_cell;
pub(crate) mod isotonic;
pub(crate) mod l2_loss;
mod loops;
pub(crate) mod lrn;
mod lstm;
pub(crate) mod lstm_cell;
mod lstm_tensors;
pub(crate) mod max_pool;
pub(crate) mod max_pool_argmax;
pub(crate) mod max_pool_grad;
pub(crate) mod no_kernels;
pub(crate) mod pool;
pub(crate) mod pool3d;
mod pool_rules;
pub(crate) mod relu;
mod rules;
pub(crate) mod softmax;
pub(crate) mod softplus;

pub use self::avg_pool::avg_pool;
pub use self::batch_norm::{BatchNorm, fused_batch_norm};
pub use self::bias::{bias_add, bias_add_as, bias_add_grad};
pub use self::conv2d::conv2d;
pub use self::conv3d::conv3d;
pub use self::cross_entropy::{softmax_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits};
pub use self::depthwise::depthwise_conv2d;
pub use self::dilation::dilation2d;
pub use self::elu::{elu, elu_grad, selu, selu_grad};
pub use self::isotonic::isotonic_regression;
pub use self::l2_loss::l2_loss;
pub use self::lrn::local_response_normalization;
pub use self::max_pool::max_pool;
pub use self::max_pool_argmax::max_pool_with_argmax;
pub use self::pool3d::{avg_pool3d, max_pool3d};
pub use self::relu::{leaky_relu, leaky_relu_grad, relu, relu_grad, relu6, relu6_grad};
pub use self::softmax::{log_softmax, softmax};
pub use self::softplus::{softplus, softplus_grad, softsign, softsign_grad};

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
