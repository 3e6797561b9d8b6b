//! Reverse-mode differentiation: walks a graph from results back to inputs and asks the row of each op for its rule.
//!
//! The crate knows no ops: a rule comes from the [`op::Registry`], and builds the nodes of the gradient itself. The
//! crate decides which nodes matter, sums the gradients of a value that is used several times, and starts with ones.
//! [`gradients`] differentiates a graph under construction, [`differentiate`] a function of a library.
#![forbid(unsafe_code)]

mod between;
mod call;
mod function;
mod gate;
mod nodes;
mod sum;
mod walk;

pub use function::differentiate;
pub use nodes::densify;
pub use op::{Gradient, Slices};
pub use walk::{GradientOptions, gradients, gradients_with};

#[cfg(test)]
mod tests;
