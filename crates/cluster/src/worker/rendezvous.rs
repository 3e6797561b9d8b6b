//! The rendezvous of a step that runs on several tasks: receives tensors of other tasks from there.

use crate::api::{RecvTensor, from_task};
use crate::worker::Worker;
use crate::worker::buffers::Buffers;
use crate::{ClusterSpec, Task};
use exec::LocalRendezvous;
use futures_channel::oneshot;
use futures_util::future::{Either, select};
use graph::{DeviceSpec, RendezvousKey};
use op::{OnOpened, Received, Rendezvous, Stored};
use status::{Error, Result};
use std::sync::Arc;
use tensor::Tensor;

/// The rendezvous of a step as its executor sees it: tensors of other tasks are received from there.
pub(crate) struct StepRendezvous {
    pub local: Arc<LocalRendezvous>,
    pub buffers: Arc<Buffers>,
    pub worker: Arc<Worker>,
    pub cluster: ClusterSpec,
    pub step_id: u64,
    pub own: Task,
}

impl Rendezvous for StepRendezvous {
    fn send(&self, key: &str, tensor: Tensor, dead: bool) -> Result<()> {
        self.local.send(key, tensor, dead)
    }

    fn recv(&self, key: &str, done: Box<dyn FnOnce(Result<Received>) + Send>) {
        match self.remote_sender(key) {
            Ok(None) => self.local.recv(key, done),
            Ok(Some(task)) => self.recv_remote(task, key, done),
            Err(error) => done(Err(error)),
        }
    }

    fn send_stored(&self, key: &str, stored: Arc<dyn Stored>) -> Result<()> {
        self.local.send_stored(key, stored)
    }

    fn open(&self, key: &str, done: OnOpened) {
        match self.remote_sender(key) {
            Ok(None) => self.local.open(key, done),
            Ok(Some(task)) => self.open_remote(task, key, done),
            Err(error) => done(Err(error)),
        }
    }

    fn abort(&self, error: Error) {
        self.buffers.abort(error.clone());
        self.local.abort(error);
    }
}

impl StepRendezvous {
    /// The task that sends this key, if it is another one.
    fn remote_sender(&self, key: &str) -> Result<Option<Task>> {
        let parsed = RendezvousKey::parse(key)?;
        if parsed.send_device.starts_with(&format!("{}/", self.own)) {
            return Ok(None);
        }
        let spec = DeviceSpec::parse(parsed.send_device)?;
        let task = Task::of_device(&spec).ok_or_else(|| RendezvousKey::invalid(key))?;
        Ok((task != self.own).then_some(task))
    }

    /// Receives a tensor from another task. The answer passes through the local rendezvous, so that aborting the step
    /// ends the wait and drops the call.
    fn recv_remote(&self, task: Task, key: &str, done: Box<dyn FnOnce(Result<Received>) + Send>) {
        let link = match self.worker.link(&self.cluster, &task) {
            Ok(link) => link,
            Err(error) => return done(Err(error)),
        };
        let (waiting, answered) = oneshot::channel::<()>();
        let receiver = move |received| {
            drop(waiting);
            done(received);
        };
        self.local.recv(key, Box::new(receiver));
        let (local, worker) = (self.local.clone(), self.worker.clone());
        let request = RecvTensor { step_id: self.step_id, key: key.to_string(), request_id: 0 };
        self.worker.runtime.spawn(Box::pin(async move {
            let start = worker.transfers.start();
            let Either::Left((answer, _)) = select(link.recv_tensor(request.clone()), answered).await else { return };
            match answer {
                Ok((tensor, dead)) => {
                    worker.counters.received(&request.key, tensor.byte_size());
                    worker.transfers.record(&request, tensor.byte_size(), start);
                    drop(local.send(&request.key, tensor, dead));
                }
                Err(error) => local.abort(from_task(error, &task.to_string())),
            }
        }));
    }
}
