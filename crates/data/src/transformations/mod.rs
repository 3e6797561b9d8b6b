//! Datasets that transform the elements of other datasets.

mod auto_shard;
mod batch;
mod cache;
mod choose_fastest;
mod choose_fastest_branch;
mod concatenate;
mod dense_to_sparse_batch;
mod directed_interleave;
mod empty;
mod filter;
mod filter_by_last_component;
mod flat_map;
mod group_by_reducer;
mod group_by_window;
mod ignore_errors;
mod index_flat_map;
mod interleave;
mod map;
mod nested;
mod prefetch;
mod random_access;
mod rebatch;
mod rebatch_v2;
mod repeat;
mod rows;
mod sampling;
mod saved;
mod scan;
mod seed_generator;
mod shard;
mod shard_policy;
mod shuffle;
mod skip;
mod sleep;
mod sliding;
mod sliding_window;
mod stack;
mod take;
mod take_while;
mod timings;
mod unbatch;
mod unique;
mod weighted_flat_map;
mod window;
mod window_op;
mod zip;
mod about;
mod assert_cardinality;
mod assert_order;
mod batch;
mod compressed;
mod iteration_counter;
mod map;
mod optimize;
mod options;
mod pass_through;
mod stack;
mod statistics;
pub(crate) mod stats_aggregator;
mod thread_pools;
mod wrapped;

use op::Op;

pub(crate) const TABLES: &[&[Op]] = &[
    auto_shard::OPS,
    batch::OPS,
    cache::HANDLE_OPS,
    cache::OPS,
    choose_fastest::OPS,
    choose_fastest_branch::OPS,
    concatenate::OPS,
    dense_to_sparse_batch::OPS,
    directed_interleave::OPS,
    filter::OPS,
    filter_by_last_component::OPS,
    flat_map::OPS,
    group_by_reducer::OPS,
    group_by_window::OPS,
    ignore_errors::OPS,
    index_flat_map::OPS,
    interleave::OPS,
    map::OPS,
    rebatch::OPS,
    rebatch_v2::OPS,
    prefetch::OPS,
    repeat::OPS,
    sampling::OPS,
    scan::OPS,
    seed_generator::OPS,
    shard::OPS,
    shuffle::OPS,
    skip::OPS,
    sleep::OPS,
    sliding_window::OPS,
    take::OPS,
    take_while::OPS,
    unbatch::OPS,
    unique::OPS,
    weighted_flat_map::OPS,
    window::OPS,
    window_op::OPS,
    zip::OPS,
    about::OPS,
    assert_cardinality::OPS,
    assert_order::OPS,
    batch::OPS,
    compressed::OPS,
    iteration_counter::OPS,
    map::OPS,
    optimize::OPS,
    options::OPS,
    statistics::OPS,
    stats_aggregator::OPS,
    thread_pools::OPS,
    wrapped::OPS,
];
