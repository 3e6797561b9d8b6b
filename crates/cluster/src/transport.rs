//! How a task reaches other tasks; what carries the calls is not known here.

use crate::{Task, WorkerClient};
use status::{Result, unavailable};
use std::sync::Arc;

/// Connects a task to others.
pub trait Transport: Send + Sync {
    /// A client of the worker of a task at an address. Connecting may be left to the first call.
    fn connect(&self, task: &Task, address: &str) -> Result<Arc<dyn WorkerClient>>;
}

/// The transport of a task without a cluster: it refuses to connect.
pub struct NoTransport;

impl Transport for NoTransport {
    fn connect(&self, task: &Task, _: &str) -> Result<Arc<dyn WorkerClient>> {
        Err(unavailable!("{task} cannot be reached from a local session"))
    }
}
