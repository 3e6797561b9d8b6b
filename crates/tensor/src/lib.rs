//! I am a typed buffer with a shape.
#![deny(unsafe_code)] // only `buffer.rs` and `allocator.rs` may use it

mod allocator;
mod buffer;
mod convert;
mod dtype;
mod element;
mod handle;
mod partial_shape;
mod shape;
mod tensor;
mod uniform;
mod variant;
pub mod wire;

pub use allocator::Recycling;
pub use buffer::Buffer;
pub use dtype::DType;
pub use element::Element;
pub use handle::ResourceHandle;
pub use partial_shape::PartialShape;
pub use shape::Shape;
pub use tensor::Tensor;
pub use variant::{AddTensors, Variant, VariantData, VariantObject};

pub use bytes::Bytes;
pub use half::{bf16, f16};
pub use num_complex::{Complex, Complex32, Complex64};

#[cfg(test)]
mod tests;
