//! I run one partition on one machine: ready nodes, frames, threads. I know kernels only as rows.
#![forbid(unsafe_code)]

mod combiner;
mod compile;
mod control_flow;
mod core;
mod executor;
mod frame;
mod function;
mod fuse;
mod join;
mod kernel_call;
mod kernels;
mod node_stats;
mod program;
mod rendezvous;
mod simplify;
mod streamed_inputs;
mod tensor_stream;
mod threads;
mod unread;
mod waiting_ops;

pub use compile::{Devices, compile, prepare};
pub use executor::{Finish, RunOptions, run};
pub use function::{Differentiate, Library};
pub use kernels::Kernels;
pub use program::Program;
pub use rendezvous::{LocalRendezvous, Sent};
pub use threads::Threads;

pub use op::{NodeStats, Stats};

#[cfg(test)]
mod tests;
