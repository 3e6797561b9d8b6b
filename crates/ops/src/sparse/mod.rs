//! Sparse and ragged tensors, sets, and conversions to and from dense tensors.

pub(crate) mod coo;
mod stack;
mod union;

pub mod add;
pub mod concat;
pub mod cross;
pub mod csr;
pub mod dense_add;
pub mod dense_cwise;
pub mod dense_matmul;
pub mod extreme;
pub mod fill_empty_rows;
pub mod matmul;
pub mod ragged_cross;
pub mod ragged_gather;
pub mod ragged_range;
pub mod ragged_to_sparse;
pub mod ragged_to_tensor;
pub mod ragged_to_variant;
pub mod ragged_variant;
pub mod reduce;
pub mod reorder;
pub mod reshape;
pub mod serialize;
pub mod sets;
pub mod slice;
pub mod softmax;
pub mod split;
pub mod tensors_map;
pub mod to_dense;

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
