//! Another task as this one calls it: numbers requests, batches concurrent RecvTensor calls, and sends the ends of steps
//! together with the next run.

use crate::api::{
    CompleteGroup, CompleteInstance, CompletedGroup, CreateWorkerSession, DeviceAttributes, Future, Logging, RecvBuf,
    RecvTensor, RegisterGraph, RunGraph, RunGraphAnswer, TransferStats, WorkerClient,
};
use crate::worker::recv_batch::RecvBatch;
use crate::worker::step_ends::StepEnds;
use crate::{Runtime, ids};
use op::{OpenedTensor, Received};
use std::sync::Arc;
use tensor::Bytes;

/// A task in another process. It decides when calls are made; `client` makes each of them.
pub struct RemoteWorker {
    client: Arc<dyn WorkerClient>,
    recv_batch: Arc<RecvBatch>,
    step_ends: Arc<StepEnds>,
}

impl RemoteWorker {
    /// A task that `client` calls, with work in the background on `runtime`.
    pub fn new(client: Arc<dyn WorkerClient>, runtime: Arc<dyn Runtime>) -> RemoteWorker {
        RemoteWorker {
            recv_batch: RecvBatch::new(client.clone(), runtime.clone()),
            step_ends: StepEnds::new(client.clone(), runtime),
            client,
        }
    }
}

impl WorkerClient for RemoteWorker {
    fn get_status(&self) -> Future<'_, Vec<DeviceAttributes>> {
        self.client.get_status()
    }

    fn create_session(&self, request: CreateWorkerSession) -> Future<'_, ()> {
        self.client.create_session(request)
    }

    fn delete_session(&self, session: String) -> Future<'_, ()> {
        Box::pin(async move {
            self.step_ends.flush().await; // the master of the session may be about to exit
            self.client.delete_session(session).await
        })
    }

    fn register_graph(&self, request: RegisterGraph) -> Future<'_, String> {
        self.client.register_graph(request)
    }

    fn deregister_graph(&self, session: String, graph: String) -> Future<'_, ()> {
        self.client.deregister_graph(session, graph)
    }

    fn run_graph(&self, mut request: RunGraph) -> Future<'_, RunGraphAnswer> {
        request.request_id = ids::request_id();
        Box::pin(self.step_ends.run_graph(request))
    }

    fn cleanup_graph(&self, step_id: u64) -> Future<'_, ()> {
        Box::pin(self.step_ends.end_step(step_id))
    }

    fn cleanup_all(&self, containers: Vec<String>) -> Future<'_, ()> {
        self.client.cleanup_all(containers)
    }

    fn recv_tensor(&self, mut request: RecvTensor) -> Future<'_, Received> {
        request.request_id = ids::request_id();
        Box::pin(self.recv_batch.recv_tensor(request))
    }

    fn open_tensor(&self, mut request: RecvTensor) -> Future<'_, OpenedTensor> {
        request.request_id = ids::request_id();
        self.client.open_tensor(request)
    }

    fn recv_buf(&self, request: RecvBuf) -> Future<'_, Bytes> {
        self.client.recv_buf(request)
    }

    fn complete_group(&self, request: CompleteGroup) -> Future<'_, CompletedGroup> {
        self.client.complete_group(request)
    }

    fn complete_instance(&self, request: CompleteInstance) -> Future<'_, i32> {
        self.client.complete_instance(request)
    }

    fn get_step_sequence(&self, graph_keys: Vec<i64>) -> Future<'_, Vec<(i64, u64)>> {
        self.client.get_step_sequence(graph_keys)
    }

    fn logging(&self, request: Logging) -> Future<'_, Vec<(u64, Vec<TransferStats>)>> {
        self.client.logging(request)
    }
}
