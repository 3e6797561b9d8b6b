//! Keeps the variables of a device in a journal on disk, so that a task that is killed and restarted finds them again.
//!
//! [`DurableVariables`] observes the variables of a device. It writes every change to the journal before other threads
//! can see the change, a thread of its own forwards the journal to the disk in groups, and compacts it when it has grown.
//! The format of the journal is in `io::journal`. Queues, tables, accumulators, the counters of the task, and variables
//! behind anonymous handles are not stored.
//!
//! ```no_run
//! # use flowgrid_durable::DurableVariables;
//! # use std::{path::Path, sync::Arc};
//! let variables = Arc::new(DurableVariables::open(Path::new("/var/flowgrid/ps-0/cpu-0"))?);
//! let device = op::Resources::new("ps");
//! variables.attach(&device)?; // restores the variables in the journal and follows all further changes
//! # Ok::<(), status::Error>(())
//! ```
#![forbid(unsafe_code)]

mod variables;

pub use variables::DurableVariables;

#[cfg(test)]
mod tests;
