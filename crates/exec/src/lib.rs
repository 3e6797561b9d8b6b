//! I run one partition on one machine: ready nodes, frames, threads. I know kernels only as rows.
#![forbid(unsafe_code)]

mod compile;
mod core;
mod executor;
mod far;
mod frame;
mod function;
mod fuse;
mod join;
mod kernels;
mod program;
mod pull;
mod rendezvous;
mod simplify;
mod threads;
mod unread;

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
