//! I walk a graph backwards and ask each row for its rule.
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
