//! Tests of graphs.

mod device;
mod fingerprint;
mod frames;
mod fuzz;
mod op_text;
mod rendezvous_key;
mod substitute;
mod wire;
