//! What a cluster does, as scalars in event files: its speed, the bytes its tasks send each other, the gradients that
//! come too late, the lengths of its queues.
//!
//! | tag | is |
//! |---|---|
//! | `cluster/steps_per_sec`, `cluster/examples_per_sec` | the speed of all workers together |
//! | `cluster/<job>/<task>/steps` | steps in which the task took part |
//! | `cluster/<job>/<task>/bytes_in`, `…/bytes_out` | bytes of tensors that came from other tasks, or went there |
//! | `cluster/<job>/<task>/steps_per_sec`, `…/bytes_in_per_sec`, `…/bytes_out_per_sec` | the same, per second |
//! | `cluster/gradients/<accumulator>/accepted`, `…/stale`, `…/dropped` | what became of gradients |
//! | `cluster/staleness/<accumulator>` | which part of those that came since the last report was of no use, 0 to 1 |
//! | `cluster/staleness_mean`, `cluster/staleness_max` | updates of others between a step's reads and its own update |
//! | `cluster/queue/<name>` | how many elements are in a queue |

mod cluster;
mod sample;
mod server;

pub use cluster::ClusterMetrics;
pub use server::ServerMetrics;

pub(crate) use sample::Sample;
