//! Datasets that transform the elements of other datasets.

mod about;
mod assert_cardinality;
mod assert_order;
mod auto_shard;
mod background_nested;
pub(crate) mod batch;
mod batch_results;
mod cache;
mod choose_fastest;
mod choose_fastest_branch;
mod compressed;
mod concatenate;
mod dense_to_sparse_batch;
mod determinism;
mod directed_interleave;
mod empty;
pub(crate) mod filter;
mod filter_by_last_component;
mod flat_map;
mod global_shuffle;
mod group_by_reducer;
mod group_by_window;
mod ignore_errors;
mod index_flat_map;
mod interleave;
mod iteration_counter;
mod legacy_parallel_interleave;
pub(crate) mod map;
pub(crate) mod map_and_batch;
mod nested;
mod optimize;
mod options;
mod padded_batch;
mod padded_stack;
mod parallel_batch;
mod parallel_calls;
mod parallel_filter;
mod parallel_interleave;
pub(crate) mod parallel_map;
mod parse_example;
mod pass_through;
pub(crate) mod prefetch;
mod random_access;
mod rebatch;
mod rebatch_v2;
pub(crate) mod repeat;
mod rows;
mod sampling;
pub(crate) mod saved;
mod scan;
pub(crate) mod seed_generator;
pub(crate) mod shard;
mod shard_policy;
pub(crate) mod shuffle;
pub(crate) mod skip;
mod sleep;
mod sliding;
mod sliding_window;
mod stack;
mod statistics;
pub(crate) mod stats_aggregator;
pub(crate) mod take;
mod take_while;
mod thread_pools;
mod timings;
mod unbatch;
mod unique;
mod weighted_flat_map;
mod window;
pub(crate) mod window_op;
mod wrapped;
mod zip;

use op::Op;

pub(crate) use stack::stacked;

pub(crate) const TABLES: &[&[Op]] = &[
    about::OPS,
    assert_cardinality::OPS,
    assert_order::OPS,
    auto_shard::OPS,
    batch::OPS,
    cache::HANDLE_OPS,
    cache::OPS,
    choose_fastest::OPS,
    choose_fastest_branch::OPS,
    compressed::OPS,
    concatenate::OPS,
    dense_to_sparse_batch::OPS,
    directed_interleave::OPS,
    filter::OPS,
    filter_by_last_component::OPS,
    flat_map::OPS,
    global_shuffle::OPS,
    group_by_reducer::OPS,
    group_by_window::OPS,
    ignore_errors::OPS,
    index_flat_map::OPS,
    interleave::OPS,
    iteration_counter::OPS,
    legacy_parallel_interleave::OPS,
    map::OPS,
    map_and_batch::OPS,
    optimize::OPS,
    options::OPS,
    padded_batch::OPS,
    parallel_batch::OPS,
    parallel_filter::OPS,
    parallel_interleave::OPS,
    parallel_map::OPS,
    parse_example::OPS,
    prefetch::OPS,
    rebatch::OPS,
    rebatch_v2::OPS,
    repeat::OPS,
    sampling::OPS,
    scan::OPS,
    seed_generator::OPS,
    shard::OPS,
    shuffle::OPS,
    skip::OPS,
    sleep::OPS,
    sliding_window::OPS,
    statistics::OPS,
    stats_aggregator::OPS,
    take::OPS,
    take_while::OPS,
    thread_pools::OPS,
    unbatch::OPS,
    unique::OPS,
    weighted_flat_map::OPS,
    window::OPS,
    window_op::OPS,
    wrapped::OPS,
    zip::OPS,
];
