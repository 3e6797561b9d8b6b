//! Datasets that transform the elements of other datasets.

mod batch;
mod cache;
mod concatenate;
mod empty;
mod filter;
mod flat_map;
mod interleave;
mod map;
mod nested;
mod random_access;
mod repeat;
mod rows;
mod saved;
mod scan;
mod shard;
mod skip;
mod sliding;
mod sliding_window;
mod stack;
mod take;
mod take_while;
mod unbatch;
mod unique;
mod window;
mod window_op;
mod zip;

use op::Op;

pub(crate) const TABLES: &[&[Op]] = &[
    batch::OPS,
    cache::HANDLE_OPS,
    cache::OPS,
    concatenate::OPS,
    filter::OPS,
    flat_map::OPS,
    interleave::OPS,
    map::OPS,
    repeat::OPS,
    scan::OPS,
    shard::OPS,
    skip::OPS,
    sliding_window::OPS,
    take::OPS,
    take_while::OPS,
    unbatch::OPS,
    unique::OPS,
    window::OPS,
    window_op::OPS,
    zip::OPS,
];
