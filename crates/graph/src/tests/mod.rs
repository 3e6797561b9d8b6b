//! Tests of graphs.

mod device;
mod fuzz;
mod op_text;
mod rendezvous_key;
mod wire;
