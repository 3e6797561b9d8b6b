//! What the queues and accumulators of a device tell about themselves, without a step.

use super::accumulator::state::Accumulator;
use super::queue::state::Queue;
use op::Resources;

/// What became of the gradients that an accumulator of synchronous training was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GradientCounts {
    /// The accumulator.
    pub name: String,
    /// How many are part of a sum.
    pub accepted: i64,
    /// How many were of an earlier step.
    pub stale: i64,
    /// How many were a second one of the same session.
    pub dropped: i64,
}

/// How many elements are in each queue, by name.
pub fn queue_lengths(resources: &Resources) -> Vec<(String, usize)> {
    resources.all::<Queue>().into_iter().map(|(name, queue)| (name, queue.len())).collect()
}

/// What became of gradients, for each accumulator that counts them.
pub fn gradient_counts(resources: &Resources) -> Vec<GradientCounts> {
    let counts = |(name, accumulator): (String, std::sync::Arc<Accumulator>)| {
        let [accepted, stale, dropped] = accumulator.counts()?;
        Some(GradientCounts { name, accepted, stale, dropped })
    };
    resources.all::<Accumulator>().into_iter().filter_map(counts).collect()
}
