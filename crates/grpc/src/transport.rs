//! Reaches other tasks over gRPC.

use crate::client::channel;
use crate::client::link::{LEAST_PATIENCE, Link, PATIENCE};
use crate::client::worker::GrpcWorker;
use crate::server::{STREAM_WINDOW, TENSOR_WINDOW};
use cluster::{Task, Transport, WorkerClient};
use status::Result;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::runtime::Handle;

/// The connections of one task to the others, on a tokio runtime.
pub struct GrpcTransport {
    runtime: Handle,
    patience: Duration,
}

impl GrpcTransport {
    /// A transport whose calls run on this runtime.
    pub fn new(runtime: Handle) -> GrpcTransport {
        GrpcTransport { runtime, patience: PATIENCE }
    }

    /// Calls fail after this time without a sign of life from the other task.
    pub fn with_patience(mut self, patience: Duration) -> GrpcTransport {
        self.patience = patience.max(LEAST_PATIENCE);
        self
    }
}

impl Transport for GrpcTransport {
    fn connect(&self, task: &Task, address: &str) -> Result<Arc<dyn WorkerClient>> {
        let link = |window| {
            let (runtime, patience, to) = (self.runtime.clone(), self.patience, address.to_string());
            let dial = Box::new(move || {
                let _inside = runtime.enter();
                channel::connect_watched(&to, patience, window)
            });
            dial()?; // reports a malformed address now, and not in the middle of a step
            Result::Ok(Arc::new(Link::to_worker(task.to_string(), address.to_string(), patience, dial)))
        };
        let (link, stream_link) = (link(TENSOR_WINDOW)?, link(STREAM_WINDOW)?);
        Ok(Arc::new(GrpcWorker { link, stream_link, accepts_ended_steps: AtomicBool::new(false) }))
    }
}
