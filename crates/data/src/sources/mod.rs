//! Datasets that produce elements of their own.

mod indexed;
mod list;
mod range;
mod tensor;
mod tensor_slice;

use op::Op;

pub(crate) const TABLES: &[&[Op]] = &[list::OPS, range::OPS, tensor::OPS, tensor_slice::OPS];
