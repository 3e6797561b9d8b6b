//! I compose ops: layers, losses, metrics, initializers, feature columns.
#![forbid(unsafe_code)]

pub mod collection;
mod formula;
mod initializer;
pub mod layer;
pub mod loss;
mod operators;
mod queue;
pub mod summary;
mod variable;

pub use formula::{Formula, Formulas};
pub use initializer::Initializer;
pub use queue::{Queue, QueueBuilder};
pub use variable::{
    Kind, PartitionedVariable, Partitioner, Reuse, SaveSlice, Variable, VariableBuilder, VariableScope,
};

#[cfg(test)]
mod tests;
