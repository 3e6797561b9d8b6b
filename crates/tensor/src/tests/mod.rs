//! Tests of tensors.

#[allow(unsafe_code)]
mod allocator;
mod fuzz;
mod partial_shape;
mod recycled;
mod uniform;
mod wire;
