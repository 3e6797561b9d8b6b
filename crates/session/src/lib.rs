//! I give the user a `Session` and a `Server`; I read target strings and hand down the registry.
#![forbid(unsafe_code)]

mod block;
mod callable;
mod counters;
mod feeds;
mod fetches;
mod link;
mod local_cluster;
mod partial;
mod server;
mod session;
mod tf_config;
mod trace;
mod values;

pub use callable::Callable;
pub use cluster::{
    Addresses, ClusterSpec, DeviceAttributes, NodeStats, RunMetadata, RunOptions, SessionConfig, Task, TaskCounts,
    TransferStats,
};
pub use counters::ServerCounters;
pub use feeds::Feeds;
pub use fetches::{FetchAs, Fetches};
pub use grpc::{ServerDef, run_metadata_message};
pub use local_cluster::LocalCluster;
pub use membership::SyncPolicy;
pub use op::{COUNTERS, DeviceType, DeviceTypes, Extensions};
pub use ops::data_structures::census::GradientCounts;
pub use partial::PartialRun;
pub use server::{Server, ServerOptions};
pub use session::Session;
pub use tf_config::{TfConfig, cluster_from_text, tf_config};
pub use trace::chrome_trace;
pub use values::{FromTensor, Values};

use std::sync::Arc;

/// What rewrites calls of `SymbolicGradient`: the gradient of functions, by the rules of all rows.
fn differentiate() -> Arc<cluster::Differentiate> {
    let registry = ops::registry();
    Arc::new(move |function, library| gradient::differentiate(&registry, function, library))
}

#[cfg(test)]
mod tests;
