//! Losses of regression.

use super::{Reduction, weighted};
use crate::TensorOps;
use graph::Output;
use ops::raw;

/// The mean of squared differences.
pub fn mean_squared_error(labels: &Output, predictions: &Output) -> Output {
    weighted(&squared_difference(predictions, labels), None, Reduction::default())
}

/// The mean of absolute differences.
pub fn absolute_difference(labels: &Output, predictions: &Output) -> Output {
    weighted(&(predictions - labels).abs(), None, Reduction::default())
}

/// The Huber loss: quadratic up to `delta`, linear beyond.
pub fn huber_loss(labels: &Output, predictions: &Output, delta: f64) -> Output {
    let error = (predictions - labels).abs();
    let quadratic = error.minimum(&error.like(delta));
    let linear = &error - &quadratic;
    weighted(&(quadratic.square() * 0.5 + linear * delta), None, Reduction::default())
}

/// `max(0, 1 - y logit)` for labels 0 and 1, which are read as -1 and 1.
pub fn hinge_loss(labels: &Output, logits: &Output) -> Output {
    let signs = labels * 2.0 - 1.0;
    weighted(&(1.0 - signs * logits).relu(), None, Reduction::default())
}

/// Half the sum of squares, for regularization.
pub fn l2_loss(x: &Output) -> Output {
    ops::nn::l2_loss(x)
}

fn squared_difference(x: &Output, y: &Output) -> Output {
    raw::squared_difference(x, y).output()
}
