//! Layers: variables and the ops between them, by the names TensorFlow gives them.

mod batch_norm;
mod convolution;
mod dense;
mod shape;

pub use batch_norm::{BatchNorm, Phase};
pub use convolution::{Conv2d, avg_pool2d, max_pool2d};
pub use dense::{Dense, dropout};
pub use shape::flatten;

use graph::Output;

/// What follows a layer's sum.
pub type Activation = fn(&Output) -> Output;
