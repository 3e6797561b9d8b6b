//! Sparse and ragged tensors, sets, and conversions to and from dense tensors.

pub(crate) mod coo;
mod stack;
mod union;

pub(crate) mod add;
pub(crate) mod concat;
pub(crate) mod cross;
pub mod csr;
pub(crate) mod dense_add;
pub(crate) mod dense_cwise;
pub(crate) mod dense_matmul;
pub(crate) mod extreme;
pub(crate) mod fill_empty_rows;
pub(crate) mod matmul;
pub(crate) mod ragged_cross;
pub(crate) mod ragged_gather;
pub(crate) mod ragged_range;
pub(crate) mod ragged_to_sparse;
pub(crate) mod ragged_to_tensor;
pub(crate) mod ragged_to_variant;
pub(crate) mod ragged_variant;
pub(crate) mod reduce;
pub(crate) mod reorder;
pub(crate) mod reshape;
pub(crate) mod serialize;
pub(crate) mod sets;
pub(crate) mod slice;
pub(crate) mod softmax;
pub(crate) mod split;
pub(crate) mod tensors_map;
pub(crate) mod to_dense;

pub use self::add::sparse_add;
pub use self::concat::sparse_concat;
pub use self::dense_add::sparse_dense_add;
pub use self::dense_cwise::{sparse_dense_div, sparse_dense_mul, sparse_dense_values_add};
pub use self::dense_matmul::sparse_dense_matmul;
pub use self::extreme::{sparse_maximum, sparse_minimum};
pub use self::fill_empty_rows::sparse_fill_empty_rows;
pub use self::matmul::sparse_matmul;
pub use self::ragged_range::ragged_range;
pub use self::ragged_to_variant::{ragged_tensor_from_variant, ragged_tensor_to_variant};
pub use self::ragged_variant::Ragged;
pub use self::reduce::{sparse_reduce_max, sparse_reduce_sum};
pub use self::reorder::sparse_reorder;
pub use self::reshape::sparse_reshape;
pub use self::serialize::{deserialize_sparse, serialize_sparse};
pub use self::sets::{dense_set_operation, set_size};
pub use self::slice::sparse_slice;
pub use self::softmax::sparse_softmax;
pub use self::split::sparse_split;
pub use self::to_dense::sparse_to_dense;

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    add::OPS,
    concat::OPS,
    cross::OPS,
    csr::add::OPS,
    csr::cholesky::OPS,
    csr::convert::OPS,
    csr::dense_product::OPS,
    csr::ordering::OPS,
    csr::parts::OPS,
    csr::softmax::OPS,
    csr::sparse_product::OPS,
    csr::transpose::OPS,
    dense_add::OPS,
    dense_cwise::OPS,
    dense_matmul::OPS,
    extreme::OPS,
    fill_empty_rows::OPS,
    matmul::OPS,
    ragged_cross::OPS,
    ragged_gather::OPS,
    ragged_range::OPS,
    ragged_to_sparse::OPS,
    ragged_to_tensor::OPS,
    ragged_to_variant::OPS,
    reduce::OPS,
    reorder::OPS,
    reshape::OPS,
    serialize::OPS,
    sets::OPS,
    slice::OPS,
    softmax::OPS,
    split::OPS,
    tensors_map::OPS,
    to_dense::OPS,
];
