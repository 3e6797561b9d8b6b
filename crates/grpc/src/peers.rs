//! Other tasks, reached over gRPC.

use crate::client::channel;
use crate::client::worker::FarWorker;
use cluster::{Peers, Task, WorkerClient};
use status::Result;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Connections of one task to the others, on a tokio runtime.
pub struct GrpcPeers {
    runtime: Handle,
}

impl GrpcPeers {
    /// Peers whose calls run on this runtime.
    pub fn new(runtime: Handle) -> GrpcPeers {
        GrpcPeers { runtime }
    }
}

impl Peers for GrpcPeers {
    fn connect(&self, task: &Task, address: &str) -> Result<Arc<dyn WorkerClient>> {
        let _inside = self.runtime.enter();
        Ok(Arc::new(FarWorker::new(task.to_string(), channel::connect(address)?)))
    }

    fn spawn(&self, work: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.runtime.spawn(work);
    }

    fn sleep(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let _inside = self.runtime.enter();
        Box::pin(tokio::time::sleep(time))
    }
}
