//! What a server counts, for whoever watches it from its own process.

use cluster::{Task, TaskCounts, Worker};
use ops::data_structures::census::{GradientCounts, gradient_counts, queue_lengths};
use std::sync::Arc;

/// What a server counts; it can be read even after the server has stopped.
#[derive(Clone)]
pub struct ServerCounters {
    worker: Arc<Worker>,
}

impl ServerCounters {
    pub(crate) fn new(worker: &Arc<Worker>) -> ServerCounters {
        ServerCounters { worker: worker.clone() }
    }

    /// Which task it is.
    pub fn task(&self) -> &Task {
        self.worker.task()
    }

    /// Steps and bytes since it was started.
    pub fn task_counts(&self) -> TaskCounts {
        self.worker.counts()
    }

    /// How many elements are in each of its queues, by name.
    pub fn queue_lengths(&self) -> Vec<(String, usize)> {
        self.worker.resources().flat_map(|resources| queue_lengths(resources)).collect()
    }

    /// What became of the gradients given to each of its accumulators of synchronous training.
    pub fn gradient_counts(&self) -> Vec<GradientCounts> {
        self.worker.resources().flat_map(|resources| gradient_counts(resources)).collect()
    }
}
