//! The counters of a server, read in its own process.

use cluster::{Task, TaskCounts, Worker};
use ops::data_structures::census::{GradientCounts, gradient_counts, queue_lengths};
use std::sync::Arc;

/// The counters of a server, which can be read even after the server has stopped.
#[derive(Clone)]
pub struct ServerCounters {
    worker: Arc<Worker>,
}

impl ServerCounters {
    pub(crate) fn new(worker: &Arc<Worker>) -> ServerCounters {
        ServerCounters { worker: worker.clone() }
    }

    /// The task of the server.
    pub fn task(&self) -> &Task {
        self.worker.task()
    }

    /// The steps it took part in, and the bytes it sent and received, since it was started.
    pub fn task_counts(&self) -> TaskCounts {
        self.worker.counts()
    }

    /// The number of elements in each of its queues, by name.
    pub fn queue_lengths(&self) -> Vec<(String, usize)> {
        self.worker.resources().flat_map(|resources| queue_lengths(resources)).collect()
    }

    /// How many gradients each of its accumulators of synchronous training has used and dropped.
    pub fn gradient_counts(&self) -> Vec<GradientCounts> {
        self.worker.resources().flat_map(|resources| gradient_counts(resources)).collect()
    }
}
