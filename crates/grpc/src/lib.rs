//! I am the wire: services, clients, codecs. I decode, call, encode; I decide nothing.
#![forbid(unsafe_code)]

mod client;
mod peers;
mod server;
mod wire;

pub use client::link::PATIENCE;
pub use client::master::MasterClient;
pub use peers::GrpcPeers;
pub use server::{Serving, serve};
pub use wire::run_metadata_message;
pub use wire::server_def::ServerDef;

#[cfg(test)]
mod tests;
