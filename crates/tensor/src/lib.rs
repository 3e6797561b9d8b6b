//! Tensors: typed, shared, aligned buffers with a shape.
//!
//! The crate holds values and converts them to and from TensorFlow's `TensorProto` ([`wire`]). It computes nothing:
//! kernels live in `math` and `ops`. Cloning a [`Tensor`] shares its elements; the first write to a shared tensor
//! copies them. Memory of freed tensors is recycled (`buffer.rs`), and a tensor whose elements are all equal is
//! materialised lazily (`uniform.rs`).
//!
//! ```
//! use flowgrid_tensor::{DType, Tensor};
//!
//! let mut matrix = Tensor::from_slice([2, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
//! let shared = matrix.clone();
//! matrix.values_mut::<f32>().unwrap()[0] = 9.0;
//! assert_eq!(matrix.dtype(), DType::F32);
//! assert_eq!(shared.values::<f32>().unwrap()[0], 1.0);
//! ```
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
pub use variant::{AddTensors, MOST_NESTED, Variant, VariantData, VariantObject, nesting_of};

pub use bytes::Bytes;
pub use half::{bf16, f16};
pub use num_complex::{Complex, Complex32, Complex64};

#[cfg(test)]
mod tests;
