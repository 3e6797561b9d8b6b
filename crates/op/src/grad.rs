//! Gradients: rules that add nodes to a graph.

use graph::{Node, Output};
use status::Result;

/// How a gradient passes through an op.
#[derive(Clone, Copy)]
pub enum Grad {
    /// For ops with one output: given its gradient, one for each input.
    Rule(fn(&Node, &Output) -> Result<Grads>),
    /// For ops with several outputs, some of which may have no gradient.
    Rules(fn(&Node, &[Option<Output>]) -> Result<Grads>),
    /// No gradient passes, on purpose.
    Stop,
    /// No rule is implemented; differentiating the op is an error.
    Unknown,
}

/// One gradient for each input, or none where there is none.
pub type Grads = Vec<Option<Gradient>>;

/// A gradient: of every element, or of some rows.
#[derive(Clone, Debug)]
pub enum Gradient {
    /// The gradient of every element.
    Dense(Output),
    /// The gradient of some rows; it is zero for the others.
    Sparse(Slices),
}

/// Rows of a gradient that is zero elsewhere.
#[derive(Clone, Debug)]
pub struct Slices {
    /// Row indices; values of repeated rows are added.
    pub indices: Output,
    /// The rows.
    pub values: Output,
    /// The shape of the dense gradient as a tensor, if known.
    pub shape: Option<Output>,
}

/// Marks an input without a gradient in `grads!`.
pub struct NoGradient;

/// The types that `grads!` accepts: an output, slices, or `NoGradient`.
pub trait IntoGradient {
    /// The gradient, if there is one.
    fn into_gradient(self) -> Option<Gradient>;
}

impl IntoGradient for Output {
    fn into_gradient(self) -> Option<Gradient> {
        Some(Gradient::Dense(self))
    }
}

impl IntoGradient for Slices {
    fn into_gradient(self) -> Option<Gradient> {
        Some(Gradient::Sparse(self))
    }
}

impl IntoGradient for NoGradient {
    fn into_gradient(self) -> Option<Gradient> {
        None
    }
}

impl<T: IntoGradient> IntoGradient for Option<T> {
    fn into_gradient(self) -> Option<Gradient> {
        self.and_then(T::into_gradient)
    }
}

/// The gradients of a rule, one for each input in order.
#[macro_export]
macro_rules! grads {
    ($($gradient:expr),* $(,)?) => { vec![$($crate::IntoGradient::into_gradient($gradient)),*] };
}
