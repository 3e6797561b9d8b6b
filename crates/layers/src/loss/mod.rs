//! Losses: one number that is small if predictions are close to labels.

mod cross_entropy;
mod regression;

pub use cross_entropy::{
    log_loss, sigmoid_cross_entropy, sigmoid_cross_entropy_with_logits, softmax_cross_entropy,
    sparse_softmax_cross_entropy,
};
pub use regression::{absolute_difference, hinge_loss, huber_loss, l2_loss, mean_squared_error};

use crate::TensorOps;
use crate::collection::LOSSES;
use graph::Output;
use ops::raw;

/// How the losses of the elements are reduced to one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Their sum divided by the number of nonzero weights.
    #[default]
    MeanOfNonzero,
    /// Their sum divided by the sum of the weights.
    Mean,
    /// Their sum.
    Sum,
    /// They are not reduced.
    None,
}

/// The weighted losses of elements, reduced to one number, which is added to the losses of the graph. The weights
/// have the shape of the losses, or one that broadcasts to it.
pub fn weighted(losses: &Output, weights: Option<&Output>, reduction: Reduction) -> Output {
    let scaled = match weights {
        Some(weights) => losses * weights,
        None => losses.clone(),
    };
    let loss = match (reduction, weights) {
        (Reduction::None, _) => scaled,
        (Reduction::Sum, _) => scaled.sum(),
        (_, None) => scaled.mean(),
        (Reduction::Mean, Some(weights)) => divided(&scaled.sum(), &(weights * losses.ones_like()).sum()),
        (Reduction::MeanOfNonzero, Some(weights)) => divided(&scaled.sum(), &present(losses, weights)),
    };
    loss.scope().graph().add_to_collection(LOSSES, loss.name());
    loss
}

/// The number of elements whose weight is not zero.
fn present(losses: &Output, weights: &Output) -> Output {
    let zero = weights.like(0.0);
    let counted = raw::not_equal(weights, &zero).output().cast(losses.dtype());
    (counted * losses.ones_like()).sum()
}

/// A quotient that is zero where the divisor is zero.
fn divided(sum: &Output, count: &Output) -> Output {
    raw::div_no_nan(sum, count).named("value").output()
}
