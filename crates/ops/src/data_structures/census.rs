//! Statistics of the queues and accumulators of a device, read without running a step.

use super::accumulator::state::Accumulator;
use super::queue::state::Queue;
use op::Resources;

/// The outcomes of the gradients that an accumulator of synchronous training received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GradientCounts {
    /// The name of the accumulator.
    pub name: String,
    /// The number of gradients that were added to a sum.
    pub accepted: i64,
    /// The number of gradients of an earlier step.
    pub stale: i64,
    /// The number of gradients that were the second one of a session in a step.
    pub dropped: i64,
}

/// The number of elements in each queue, by name.
pub fn queue_lengths(resources: &Resources) -> Vec<(String, usize)> {
    resources.all::<Queue>().into_iter().map(|(name, queue)| (name, queue.len())).collect()
}

/// The outcomes of gradients, for each accumulator that counts them.
pub fn gradient_counts(resources: &Resources) -> Vec<GradientCounts> {
    let counts = |(name, accumulator): (String, std::sync::Arc<Accumulator>)| {
        let [accepted, stale, dropped] = accumulator.counts()?;
        Some(GradientCounts { name, accepted, stale, dropped })
    };
    resources.all::<Accumulator>().into_iter().filter_map(counts).collect()
}
