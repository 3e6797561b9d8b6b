//! Max and average pooling over images and volumes, channels last.

mod average;
mod element;
mod max;
mod shape;

pub use average::{average, average_grad};
pub use element::{Averaged, Pooled};
pub use max::{max, max_argmax, max_argmax_gather, max_argmax_grad, max_grad, max_grad_grad};
pub use shape::PoolShape;
