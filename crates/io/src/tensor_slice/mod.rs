//! Checkpoints of the first format (V1): tables with slices of tensors as messages.

mod reader;
mod wire;
mod writer;

pub use reader::{SlicedTensor, TensorSliceReader};
pub use writer::TensorSliceWriter;
