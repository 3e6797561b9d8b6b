//! Layers: variables and the ops between them, by the names TensorFlow gives them.

mod batch_norm;
mod convolution;
mod dense;
mod dropout;
mod pooling;
mod sequential;
mod shape;

pub use batch_norm::BatchNorm;
pub use convolution::Conv2d;
pub use dense::Dense;
pub use dropout::{Dropout, dropout, dropout_with_seed};
pub use pooling::{AvgPool2d, MaxPool2d, avg_pool2d, max_pool2d};
pub use sequential::Sequential;
pub use shape::flatten;

use crate::VariableScope;
use graph::Output;

/// A function that a layer applies to its result: `TensorOps::relu`.
pub type Activation = fn(&Output) -> Output;

/// Whether a model is trained or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Batch normalization uses the statistics of the batch and updates its moving averages; dropout is active.
    Training,
    /// Batch normalization uses its moving averages; dropout does nothing.
    Inference,
}

/// A part of a model: from one tensor to another, with variables of its own.
///
/// A layer holds its settings only. The variables live in the graph, under the names of the scope: to apply a layer
/// twice with the same variables, apply it in the same scope with `Reuse::Auto` or `Reuse::Always`.
///
/// Functions of one tensor are layers too: `flatten`, `TensorOps::relu`, closures.
pub trait Layer {
    /// Adds the layer to the graph of `x`; its variables are called by their names in `variables`.
    fn forward(&self, variables: &VariableScope, x: &Output, phase: Phase) -> Output;

    /// The name of the scope in which [`Sequential`] puts the variables, unless the layer was added with a name.
    fn default_name(&self) -> &str {
        "layer"
    }
}

impl<F: Fn(&Output) -> Output> Layer for F {
    fn forward(&self, variables: &VariableScope, x: &Output, _: Phase) -> Output {
        self(&x.seen_from(variables.scope()))
    }

    fn default_name(&self) -> &str {
        "lambda"
    }
}
