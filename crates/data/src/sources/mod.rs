//! Datasets that produce elements of their own.

mod files;
mod fixed_length;
mod indexed;
mod list;
mod range;
mod tensor;
mod tensor_slice;
mod text_line;
mod tf_record;

use op::Op;

pub(crate) const TABLES: &[&[Op]] =
    &[fixed_length::OPS, list::OPS, range::OPS, tensor::OPS, tensor_slice::OPS, text_line::OPS, tf_record::OPS];
