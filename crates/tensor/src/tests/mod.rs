//! Tests of tensors.

mod fuzz;
mod partial_shape;
mod recycled;
mod uniform;
mod wire;
