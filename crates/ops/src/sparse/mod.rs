//! Sparse and ragged tensors, sets, and what moves between them and dense tensors.

pub(crate) mod coo;
mod union;

pub mod add;
pub mod concat;
pub mod dense_add;
pub mod dense_cwise;
pub mod dense_matmul;
pub mod extreme;
pub mod fill_empty_rows;
pub mod reduce;
pub mod reorder;
pub mod reshape;
pub mod slice;
pub mod softmax;
pub mod split;
pub mod to_dense;

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    add::OPS,
    concat::OPS,
    dense_add::OPS,
    dense_cwise::OPS,
    dense_matmul::OPS,
    extreme::OPS,
    fill_empty_rows::OPS,
    reduce::OPS,
    reorder::OPS,
    reshape::OPS,
    slice::OPS,
    softmax::OPS,
    split::OPS,
    to_dense::OPS,
];
