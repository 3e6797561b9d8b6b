//! I am the wire: services, clients, codecs. I decode, call, encode; I decide nothing.
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
