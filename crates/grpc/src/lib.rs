//! The gRPC transport: servers of TensorFlow's MasterService and WorkerService, clients for them, and the conversion
//! between protocol buffers and the types of `cluster`.
//!
//! The crate decodes requests, calls, and encodes answers. It also keeps connections: deadlines of calls, liveness probes,
//! the backoff of reconnects, coalescing of small writes, and the return of free memory. `cluster` decides which calls are
//! made, batched and repeated. Start at [`serve`] for a server and at [`GrpcTransport`] for connections to other tasks.
#![forbid(unsafe_code)]

mod client;
mod runtime;
mod server;
mod transport;
mod wire;

pub use client::link::PATIENCE;
pub use client::master::{GrpcMaster, GrpcMasterOptions};
pub use runtime::{TokioRuntime, polled_in};
pub use server::{Serving, serve};
pub use transport::GrpcTransport;
pub use wire::run_metadata_message;
pub use wire::server_def::ServerDef;

#[cfg(test)]
mod tests;
