//! Ops that move and select elements: constants, shapes, slices, gathers.

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
mod segments;
mod strided_spec;
pub(crate) mod walk;

pub mod bincount;
pub mod bitcast;
pub mod broadcast;
pub mod check_numerics;
pub mod concat;
pub mod constant;
pub mod count_sparse;
pub mod data_format;
pub mod diag;
pub mod dynamic_partition;
pub mod dynamic_stitch;
pub mod edit_distance;
pub mod fake_quant;
pub mod fill;
pub mod fingerprint;
pub mod gather;
pub mod gather_nd;
pub mod histogram;
pub mod identity;
pub mod immutable_const;
pub mod in_top_k;
pub mod inplace;
pub mod invert_permutation;
pub mod list_diff;
pub mod matrix_band_part;
pub mod matrix_diag;
pub mod matrix_set_diag;
pub mod mirror_pad;
pub mod nth_element;
pub mod one_hot;
pub mod pack;
pub mod pad;
pub mod passing;
pub mod patches;
pub mod quantize_dequantize;
pub mod range;
pub mod reshape;
pub mod reverse;
pub mod scatter_nd;
pub mod search_sorted;
pub mod segment;
pub mod shape;
pub mod slice;
pub mod space_batch;
pub mod space_depth;
pub mod sparse_segment;
pub mod sparse_segment_grad;
pub mod split;
pub mod strided_slice;
pub mod tensor_scatter;
pub mod tile;
pub mod top_k;
pub(crate) mod top_k_unique;
pub mod transpose;
pub mod unique;
pub mod unravel_index;
pub mod unsorted_segment;
pub mod where_true;

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    bincount::OPS,
    bitcast::OPS,
    broadcast::OPS,
    check_numerics::OPS,
    concat::OPS,
    constant::OPS,
    count_sparse::OPS,
    data_format::OPS,
    diag::OPS,
    dynamic_partition::OPS,
    dynamic_stitch::OPS,
    edit_distance::OPS,
    fake_quant::OPS,
    fill::OPS,
    fingerprint::OPS,
    gather::OPS,
    gather_nd::OPS,
    histogram::OPS,
    identity::OPS,
    immutable_const::OPS,
    in_top_k::OPS,
    inplace::OPS,
    invert_permutation::OPS,
    list_diff::OPS,
    matrix_band_part::OPS,
    matrix_diag::OPS,
    matrix_set_diag::OPS,
    mirror_pad::OPS,
    nth_element::OPS,
    one_hot::OPS,
    pack::OPS,
    pad::OPS,
    passing::OPS,
    patches::OPS,
    quantize_dequantize::OPS,
    range::OPS,
    reshape::OPS,
    reverse::OPS,
    scatter_nd::OPS,
    search_sorted::OPS,
    segment::OPS,
    shape::OPS,
    slice::OPS,
    space_batch::OPS,
    space_depth::OPS,
    sparse_segment::OPS,
    sparse_segment_grad::OPS,
    split::OPS,
    strided_slice::OPS,
    tensor_scatter::OPS,
    tile::OPS,
    top_k::OPS,
    top_k_unique::OPS,
    transpose::OPS,
    unique::OPS,
    unravel_index::OPS,
    unsorted_segment::OPS,
    where_true::OPS,
];
