//! Layers, losses, initializers, variables, queues and summaries, built from ops.
//!
//! The crate adds nodes to a graph, under the names that TensorFlow gives them. It runs nothing and knows no optimizer.
//!
//! Operations on tensors are methods of [`TensorOps`]; constants and placeholders are methods of [`ScopeOps`]. A
//! model gets its variables from a [`VariableScope`], and consists of [`Layer`]s, which [`Sequential`] puts one after
//! another.
//!
//! ```
//! use flowgrid_layers::collection::trainable_variables;
//! use flowgrid_layers::{Dense, Layer, ScopeOps, TensorOps, VariableScope};
//! use tensor::{DType, PartialShape};
//!
//! let graph = graph::Graph::with_ops(ops::registry());
//! let x = graph.root().placeholder(DType::F32, &[-1, 4]);
//! let y = Dense::new(3).activation(TensorOps::relu).apply(&VariableScope::new(&graph.root()), &x);
//! assert_eq!(y.shape(), PartialShape::new(&[-1, 3]));
//! assert_eq!(trainable_variables(&graph).len(), 2);
//! ```
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
