//! Metrics of a cluster as scalars in event files: its speed, the bytes that its tasks exchange, stale gradients, and
//! the lengths of its queues.
//!
//! | tag | is |
//! |---|---|
//! | `cluster/steps_per_sec`, `cluster/examples_per_sec` | the speed of all workers together |
//! | `cluster/<job>/<task>/steps` | steps in which the task took part |
//! | `cluster/<job>/<task>/bytes_in`, `…/bytes_out` | bytes of tensors received from other tasks, or sent to them |
//! | `cluster/<job>/<task>/steps_per_sec`, `…/bytes_in_per_sec`, `…/bytes_out_per_sec` | the same, per second |
//! | `cluster/gradients/<accumulator>/accepted`, `…/stale`, `…/dropped` | the number of gradients with this outcome |
//! | `cluster/staleness/<accumulator>` | the share of unused gradients since the last report, 0 to 1 |
//! | `cluster/staleness_mean`, `cluster/staleness_max` | updates of others between a step's reads and its own update |
//! | `cluster/queue/<name>` | the number of elements in a queue |

mod cluster;
mod sample;
mod server;

pub use cluster::ClusterMetrics;
pub use server::ServerMetrics;

pub(crate) use sample::Sample;
