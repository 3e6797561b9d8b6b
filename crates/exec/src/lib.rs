//! Runs one partition of a graph on one machine.
//!
//! A graph is simplified and compiled once, by [`prepare`], into a [`Program`]; [`run`] then runs the program for every
//! step. The crate knows ops only through their rows: kernels, and facts such as the role in control flow. Values from
//! other tasks come through a [`op::Rendezvous`]; the crate opens no connections.
#![forbid(unsafe_code)]

mod combiner;
mod compile;
mod control_flow;
mod core;
mod executor;
mod frame;
mod function;
mod fuse;
mod imported;
mod join;
mod kernel_call;
mod kernels;
mod node_stats;
mod program;
mod remote_function;
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
pub use remote_function::{RemoteFunction, RemoteTask, Target};
pub use rendezvous::{LocalRendezvous, Sent};
pub use threads::Threads;

pub use op::{NodeStats, Stats};

#[cfg(test)]
mod tests;
