//! Other tasks, reached over gRPC.

use crate::client::channel;
use crate::client::link::{LEAST_PATIENCE, Link, PATIENCE};
use crate::client::worker::GrpcWorker;
use crate::server::{STREAM_WINDOW, TENSOR_WINDOW};
use cluster::{Peers, Task, WorkerClient};
use status::Result;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Connections of one task to the others, on a tokio runtime.
pub struct GrpcPeers {
    runtime: Handle,
    patience: Duration,
}

impl GrpcPeers {
    /// Peers whose calls run on this runtime.
    pub fn new(runtime: Handle) -> GrpcPeers {
        GrpcPeers { runtime, patience: PATIENCE }
    }

    /// The same, but a task is taken for dead after another time without a sign of life.
    pub fn with_patience(mut self, patience: Duration) -> GrpcPeers {
        self.patience = patience.max(LEAST_PATIENCE);
        self
    }
}

impl Peers for GrpcPeers {
    fn connect(&self, task: &Task, address: &str) -> Result<Arc<dyn WorkerClient>> {
        let link = |window| {
            let (runtime, patience, to) = (self.runtime.clone(), self.patience, address.to_string());
            let dial = Box::new(move || {
                let _inside = runtime.enter();
                channel::connect_watched(&to, patience, window)
            });
            dial()?; // a bad address shows here, not in the middle of a step
            Result::Ok(Arc::new(Link::to_worker(task.to_string(), address.to_string(), patience, dial)))
        };
        let (link, stream_link) = (link(TENSOR_WINDOW)?, link(STREAM_WINDOW)?);
        Ok(Arc::new(GrpcWorker { link, stream_link, accepts_ended_steps: AtomicBool::new(false) }))
    }

    fn spawn(&self, work: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.runtime.spawn(work);
    }

    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let _inside = self.runtime.enter();
        Box::pin(tokio::time::sleep(time))
    }

    fn yield_now(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::task::yield_now())
    }

    fn aside(&self, work: &mut dyn FnMut()) {
        match Handle::try_current() {
            Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
            _ => work(),
        }
    }
}
