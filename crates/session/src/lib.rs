//! I give the user a `Session` and a `Server`; I read target strings and hand down the registry.
#![forbid(unsafe_code)]

mod server;

pub use cluster::{ClusterSpec, RunMetadata, RunOptions, SessionConfig, Task};
pub use server::{Server, ServerOptions};
