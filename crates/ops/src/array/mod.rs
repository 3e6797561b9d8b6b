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

pub(crate) mod bincount;
pub(crate) mod bitcast;
pub(crate) mod broadcast;
pub(crate) mod check_numerics;
pub(crate) mod concat;
pub(crate) mod constant;
pub(crate) mod count_sparse;
pub(crate) mod data_format;
pub(crate) mod diag;
pub(crate) mod dynamic_partition;
pub(crate) mod dynamic_stitch;
pub(crate) mod edit_distance;
pub(crate) mod fake_quant;
pub(crate) mod fill;
pub(crate) mod fingerprint;
pub(crate) mod gather;
pub(crate) mod gather_nd;
pub(crate) mod histogram;
pub(crate) mod identity;
pub(crate) mod immutable_const;
pub(crate) mod in_top_k;
pub(crate) mod inplace;
pub(crate) mod invert_permutation;
pub(crate) mod list_diff;
pub(crate) mod matrix_band_part;
pub(crate) mod matrix_diag;
pub(crate) mod matrix_set_diag;
pub(crate) mod mirror_pad;
pub(crate) mod nth_element;
pub(crate) mod one_hot;
pub(crate) mod pack;
pub(crate) mod pad;
pub(crate) mod passing;
pub(crate) mod patches;
pub(crate) mod quantize_dequantize;
pub(crate) mod range;
pub(crate) mod reshape;
pub(crate) mod reverse;
pub(crate) mod scatter_nd;
pub(crate) mod search_sorted;
pub(crate) mod segment;
pub(crate) mod shape;
pub(crate) mod slice;
pub(crate) mod space_batch;
pub(crate) mod space_depth;
pub(crate) mod sparse_segment;
pub(crate) mod sparse_segment_grad;
pub(crate) mod split;
pub(crate) mod strided_slice;
pub(crate) mod tensor_scatter;
pub(crate) mod tile;
pub(crate) mod top_k;
pub(crate) mod top_k_unique;
pub(crate) mod transpose;
pub(crate) mod unique;
pub(crate) mod unravel_index;
pub(crate) mod unsorted_segment;
pub(crate) mod where_true;

pub use self::bincount::bincount;
pub use self::bitcast::bitcast;
pub use self::broadcast::{broadcast_args, broadcast_gradient_args, broadcast_to};
pub use self::check_numerics::check_numerics;
pub use self::concat::{concat, concat_offset};
pub use self::constant::{constant, placeholder, placeholder_with_default};
pub use self::data_format::{data_format_dim_map, data_format_vec_permute};
pub use self::diag::{diag, diag_part};
pub use self::dynamic_partition::dynamic_partition;
pub use self::dynamic_stitch::dynamic_stitch;
pub use self::edit_distance::edit_distance;
pub use self::fake_quant::fake_quant_with_min_max_vars;
pub use self::fill::{fill, ones_like, zeros, zeros_like};
pub use self::gather::{gather, gather_along};
pub use self::gather_nd::gather_nd;
pub use self::histogram::{bucketize, histogram_fixed_width};
pub use self::identity::{ensure_shape, identity, identity_n, prevent_gradient, stop_gradient};
pub use self::in_top_k::in_top_k;
pub use self::invert_permutation::invert_permutation;
pub use self::list_diff::list_diff;
pub use self::matrix_band_part::matrix_band_part;
pub use self::matrix_diag::{matrix_diag, matrix_diag_part, matrix_diag_part_band};
pub use self::matrix_set_diag::{matrix_set_diag, matrix_set_diag_band};
pub use self::mirror_pad::mirror_pad;
pub use self::nth_element::nth_element;
pub use self::one_hot::one_hot;
pub use self::pack::{pack, unpack};
pub use self::pad::{pad, pad_v2};
pub use self::patches::extract_image_patches;
pub use self::quantize_dequantize::quantize_and_dequantize;
pub use self::range::{lin_space, range};
pub use self::reshape::{expand_dims, reshape, reshape_to, squeeze};
pub use self::reverse::{reverse, reverse_sequence, roll};
pub use self::scatter_nd::scatter_nd;
pub use self::search_sorted::{lower_bound, upper_bound};
pub use self::segment::{segment_max, segment_mean, segment_min, segment_prod, segment_sum};
pub use self::shape::{rank, shape, shape_as, shape_n, size};
pub use self::slice::slice;
pub use self::space_batch::{batch_to_space_nd, space_to_batch_nd};
pub use self::space_depth::{depth_to_space, space_to_depth};
pub use self::sparse_segment::{Norm, sparse_segment, sparse_segment_with_count};
pub use self::sparse_segment_grad::{sparse_segment_grad, sparse_segment_grad_v2};
pub use self::split::{split, split_v};
pub use self::strided_slice::{strided_slice, strided_slice_grad, tensor_strided_slice_update};
pub use self::tensor_scatter::{
    tensor_scatter_add, tensor_scatter_max, tensor_scatter_min, tensor_scatter_sub, tensor_scatter_update,
};
pub use self::tile::tile;
pub use self::top_k::top_k;
pub use self::transpose::{conjugate_transpose, transpose};
pub use self::unique::{unique, unique_with_counts};
pub use self::unravel_index::unravel_index;
pub use self::unsorted_segment::{
    unsorted_segment_max, unsorted_segment_min, unsorted_segment_prod, unsorted_segment_sum,
};
pub use self::where_true::where_true;

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
