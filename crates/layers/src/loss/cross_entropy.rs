//! Cross entropies.

use super::{Reduction, weighted};
use crate::TensorOps;
use graph::Output;
use ops::nn::{softmax_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits};

/// The cross entropy of logits with the softmax of rows, for labels that are probabilities.
pub fn softmax_cross_entropy(labels: &Output, logits: &Output) -> Output {
    weighted(&softmax_cross_entropy_with_logits(logits, &labels.cast(logits.dtype())), None, Reduction::default())
}

/// The cross entropy of logits with the softmax of rows, for labels that are indices of classes.
pub fn sparse_softmax_cross_entropy(labels: &Output, logits: &Output) -> Output {
    weighted(&sparse_softmax_cross_entropy_with_logits(logits, labels), None, Reduction::default())
}

/// The cross entropy of logits with the sigmoid of each element, for labels that are probabilities.
pub fn sigmoid_cross_entropy(labels: &Output, logits: &Output) -> Output {
    let losses = sigmoid_cross_entropy_with_logits(logits, &labels.cast(logits.dtype()));
    weighted(&losses, None, Reduction::default())
}

/// `max(x, 0) - x z + log(1 + exp(-|x|))` for logits x and labels z, element by element.
pub fn sigmoid_cross_entropy_with_logits(logits: &Output, labels: &Output) -> Output {
    logits.relu() - logits * labels + (-logits.abs()).exp().log1p()
}

/// `-z log(p + ε) - (1 - z) log(1 - p + ε)` for predicted probabilities p and labels z.
pub fn log_loss(labels: &Output, predictions: &Output, epsilon: f64) -> Output {
    let hit = labels * (predictions + epsilon).log();
    let miss = (1.0 - labels) * (1.0 - predictions + epsilon).log();
    weighted(&(-hit - miss), None, Reduction::default())
}
