//! Losses of probabilities.

use super::{Reduction, weighted};
use crate::TensorOps;
use graph::Output;
use ops::nn::cross_entropy::{softmax_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits};

/// Of scores against probabilities, one row for each example.
pub fn softmax_cross_entropy(labels: &Output, logits: &Output) -> Output {
    weighted(&softmax_cross_entropy_with_logits(logits, &labels.cast(logits.dtype())), None, Reduction::default())
}

/// Of scores against the numbers of the right classes.
pub fn sparse_softmax_cross_entropy(labels: &Output, logits: &Output) -> Output {
    weighted(&sparse_softmax_cross_entropy_with_logits(logits, labels), None, Reduction::default())
}

/// Of one score against one probability each.
pub fn sigmoid_cross_entropy(labels: &Output, logits: &Output) -> Output {
    let losses = sigmoid_cross_entropy_with_logits(logits, &labels.cast(logits.dtype()));
    weighted(&losses, None, Reduction::default())
}

/// `max(x, 0) - x z + log(1 + exp(-|x|))` for scores x and probabilities z, element by element.
pub fn sigmoid_cross_entropy_with_logits(logits: &Output, labels: &Output) -> Output {
    logits.relu() - logits * labels + (-logits.abs()).exp().log1p()
}

/// `-z log(p + ε) - (1 - z) log(1 - p + ε)` for probabilities p against z.
pub fn log_loss(labels: &Output, predictions: &Output, epsilon: f64) -> Output {
    let hit = labels * (predictions + epsilon).log();
    let miss = (1.0 - labels) * (1.0 - predictions + epsilon).log();
    weighted(&(-hit - miss), None, Reduction::default())
}
