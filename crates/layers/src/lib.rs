//! Layers, losses, initializers, variables, queues and summaries, built from ops.
//!
//! The crate adds nodes to a graph, under the names that TensorFlow gives them. It runs nothing and knows no optimizer.
//!
//! Operations on tensors are methods of [`TensorOps`]; constants and placeholders are methods of [`ScopeOps`]. A
//! model gets its variables from a [`VariableScope`], and consists of [`Layer`]s, which [`Sequential`] puts one after
//! another.
#![forbid(unsafe_code)]

pub mod collection;
mod initializer;
mod layer;
pub mod loss;
mod operators;
mod queue;
pub mod summary;
mod tensor_ops;
mod variable;

pub use initializer::{Fan, Initializer};
pub use layer::{
    Activation, AvgPool2d, BatchNorm, Conv2d, Dense, Dropout, Layer, MaxPool2d, Phase, Sequential, avg_pool2d, dropout,
    dropout_with_seed, flatten, max_pool2d,
};
pub use queue::{Queue, QueueBuilder};
pub use tensor_ops::{ScopeOps, TensorOps};
pub use variable::{
    Kind, PartitionedVariable, Partitioner, Reuse, SaveSlice, Variable, VariableBuilder, VariableCreator, VariableScope,
};

#[cfg(test)]
mod tests;
