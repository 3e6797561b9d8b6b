//! Checkpoints of the first format: tables that hold slices of tensors as messages.

mod reader;
mod wire;
mod writer;

pub use reader::{SlicedTensor, TensorSliceReader};
pub use writer::TensorSliceWriter;
