//! Sessions and servers, as users of Flowgrid see them.
//!
//! A [`Session`] runs steps of a graph: in this process ([`Session::local`]), on a server ([`Session::connect`]), or on a
//! server of this process without a connection ([`Server::session`]). A [`Server`] is one task of a cluster, and a
//! [`LocalCluster`] is a whole cluster in this process. The crate reads target strings and gives masters and workers
//! their ops; how steps are planned and run is the business of `cluster`.
//!
//! ```
//! use flowgrid_session::{Session, feeds};
//! use graph::Graph;
//! use tensor::{DType, PartialShape};
//!
//! let graph = Graph::with_ops(ops::registry());
//! let x = ops::array::placeholder(&graph.root(), DType::F32, PartialShape::scalar());
//! let square = &x * &x;
//! let value: f32 = Session::local(&graph).run_with(&square, feeds! { &x => 3.0f32 })?;
//! assert_eq!(value, 9.0);
//! # Ok::<(), status::Error>(())
//! ```
#![forbid(unsafe_code)]

mod block;
mod callable;
mod counters;
mod feeds;
mod fetches;
mod local_cluster;
mod partial;
mod registration;
mod runtime;
mod server;
mod server_master;
mod session;
mod target;
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

/// Differentiates functions for calls of `SymbolicGradient`, by the gradient rules of all ops.
fn differentiate() -> Arc<cluster::Differentiate> {
    let registry = data::registry();
    Arc::new(move |function, library| gradient::differentiate(&registry, function, library))
}

#[cfg(test)]
mod tests;
