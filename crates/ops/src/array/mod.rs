//! Moving and selecting elements: constants, shapes, slices, gathers.

#[macro_use]
pub(crate) mod index;
#[macro_use]
pub(crate) mod units;
pub(crate) mod args;
mod band;
mod keys;
pub(crate) mod nodes;
pub(crate) mod numbers;
mod order;
pub(crate) mod walk;

pub mod bincount;
pub mod concat;
pub mod constant;
pub mod count_sparse;
pub mod diag;
pub mod dynamic_partition;
pub mod dynamic_stitch;
pub mod edit_distance;
pub mod fill;
pub mod gather;
pub mod gather_nd;
pub mod histogram;
pub mod identity;
pub mod in_top_k;
pub mod invert_permutation;
pub mod list_diff;
pub mod matrix_band_part;
pub mod matrix_diag;
pub mod matrix_set_diag;
pub mod nth_element;
pub mod one_hot;
pub mod pack;
pub mod pad;
pub mod range;
pub mod reshape;
pub mod scatter_nd;
pub mod search_sorted;
pub mod segment;
pub mod shape;
pub mod slice;
pub mod sparse_segment;
pub mod sparse_segment_grad;
pub mod split;
pub mod tensor_scatter;
pub mod top_k;
pub mod transpose;
pub mod unique;
pub mod unsorted_segment;
pub mod where_true;

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    bincount::OPS,
    concat::OPS,
    constant::OPS,
    count_sparse::OPS,
    diag::OPS,
    dynamic_partition::OPS,
    dynamic_stitch::OPS,
    edit_distance::OPS,
    fill::OPS,
    gather::OPS,
    gather_nd::OPS,
    histogram::OPS,
    identity::OPS,
    in_top_k::OPS,
    invert_permutation::OPS,
    list_diff::OPS,
    matrix_band_part::OPS,
    matrix_diag::OPS,
    matrix_set_diag::OPS,
    nth_element::OPS,
    one_hot::OPS,
    pack::OPS,
    pad::OPS,
    range::OPS,
    reshape::OPS,
    scatter_nd::OPS,
    search_sorted::OPS,
    segment::OPS,
    shape::OPS,
    slice::OPS,
    sparse_segment::OPS,
    sparse_segment_grad::OPS,
    split::OPS,
    tensor_scatter::OPS,
    top_k::OPS,
    transpose::OPS,
    unique::OPS,
    unsorted_segment::OPS,
    where_true::OPS,
];
