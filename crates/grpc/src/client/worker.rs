//! The WorkerService of another task.

use crate::client::link::{Connection, Link};
use crate::client::{call, recv_tensor, tensor_stream};
use crate::server::MAX_MESSAGE;
use crate::wire::extensions::{self, ACCEPTS_ENDED_STEPS, ENDED_STEPS, RUN_GRAPH};
use crate::wire::{self, buffers, collectives, stats};
use cluster::{
    CompleteGroup, CompleteInstance, CompletedGroup, CreateWorkerSession, Deliver, DeviceAttributes, Features, Future,
    Logging, OpenedTensor, RecvBuf, RecvTensor, RegisterGraph, RunGraph, RunGraphAnswer, TransferStats, WorkerClient,
};
use http::{HeaderMap, HeaderName};
use proto::tensorflow as pb;
use proto::tensorflow::worker_service_client::WorkerServiceClient;
use status::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tensor::{Bytes, Tensor};
use tonic::Extensions;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;

/// How long a task may take to answer that a session has ended.
const DELETE_TIMEOUT: Duration = Duration::from_secs(10);

/// A task that is reached over gRPC. Each method makes one call.
pub(crate) struct GrpcWorker {
    pub link: Arc<Link>,
    /// A connection for tensors that are read in chunks: their bytes must not delay other answers.
    pub stream_link: Arc<Link>,
    /// Whether the task accepts the ends of steps with a run, as its last answer says.
    pub accepts_ended_steps: AtomicBool,
}

fn client(connection: &Connection) -> WorkerServiceClient<Channel> {
    WorkerServiceClient::new(connection.channel.clone())
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE)
}

impl WorkerClient for GrpcWorker {
    fn get_status(&self) -> Future<'_, Vec<DeviceAttributes>> {
        Box::pin(async move {
            let call =
                async |connection: Arc<Connection>| client(&connection).get_status(pb::GetStatusRequest {}).await;
            let answer = self.link.call("GetStatus", call).await?.into_inner();
            Ok(answer.device_attributes.into_iter().map(wire::decode_device).collect())
        })
    }

    fn create_session(&self, request: CreateWorkerSession) -> Future<'_, ()> {
        Box::pin(async move {
            let message = wire::encode_create_worker_session(request);
            let call = async |connection: Arc<Connection>| client(&connection).create_worker_session(message).await;
            self.link.call("CreateWorkerSession", call).await.map(drop)
        })
    }

    fn delete_session(&self, session: String) -> Future<'_, ()> {
        Box::pin(async move {
            let mut request = tonic::Request::new(pb::DeleteWorkerSessionRequest { session_handle: session });
            request.set_timeout(DELETE_TIMEOUT);
            let call = async |connection: Arc<Connection>| client(&connection).delete_worker_session(request).await;
            self.link.call("DeleteWorkerSession", call).await.map(drop)
        })
    }

    fn register_graph(&self, request: RegisterGraph) -> Future<'_, String> {
        Box::pin(async move {
            let message = wire::encode_register_graph(request);
            let call = async |connection: Arc<Connection>| client(&connection).register_graph(message).await;
            Ok(self.link.call("RegisterGraph", call).await?.into_inner().graph_handle)
        })
    }

    fn deregister_graph(&self, session: String, graph: String) -> Future<'_, ()> {
        Box::pin(async move {
            let message = wire::encode_deregister_graph(session, graph);
            let call = async |connection: Arc<Connection>| client(&connection).deregister_graph(message).await;
            self.link.call("DeregisterGraph", call).await.map(drop)
        })
    }

    fn run_graph(&self, request: RunGraph) -> Future<'_, RunGraphAnswer> {
        Box::pin(async move { self.run_graph_after(&[], request).await? })
    }

    fn cleanup_graph(&self, step_id: u64) -> Future<'_, ()> {
        Box::pin(async move { self.cleanup_graphs(&[step_id]).await })
    }

    fn features(&self) -> Features {
        Features {
            recv_batches: self.link.accepts_batches.load(Ordering::Relaxed),
            step_ends: self.accepts_ended_steps.load(Ordering::Relaxed),
        }
    }

    fn run_graph_after<'a>(&'a self, ended: &'a [u64], request: RunGraph) -> Future<'a, Result<RunGraphAnswer>> {
        Box::pin(async move {
            let (mut post, layout) = (call::post(RUN_GRAPH), &wire::RUN_GRAPH_ANSWER);
            if let Some(ended) = extensions::ended_steps_header(ended) {
                post = post.header(ENDED_STEPS, ended);
            }
            let message = wire::encode_run_graph(request)?;
            let call = async |connection: Arc<Connection>| call::call(&connection, post, message, layout).await;
            let (answer, headers) = self.link.call("RunGraph", call).await?;
            self.accepts_ended_steps.store(headers.contains_key(ACCEPTS_ENDED_STEPS), Ordering::Relaxed);
            let (answer, content) = answer.open();
            Ok(wire::decode_run_graph_answer(answer, content, headers.contains_key(extensions::DERIVED)))
        })
    }

    fn cleanup_graphs<'a>(&'a self, steps: &'a [u64]) -> Future<'a, ()> {
        Box::pin(async move {
            let Some((&last, others)) = steps.split_last() else { return Ok(()) };
            let others = extensions::ended_steps_header(others);
            let headers = HeaderMap::from_iter(others.map(|others| (HeaderName::from_static(ENDED_STEPS), others)));
            let (metadata, message) =
                (MetadataMap::from_headers(headers), pb::CleanupGraphRequest { step_id: last as i64 });
            let request = tonic::Request::from_parts(metadata, Extensions::default(), message);
            let call = async |connection: Arc<Connection>| client(&connection).cleanup_graph(request).await;
            self.link.call("CleanupGraph", call).await.map(drop)
        })
    }

    fn cleanup_all(&self, containers: Vec<String>) -> Future<'_, ()> {
        Box::pin(async move {
            let message = pb::CleanupAllRequest { container: containers };
            let call = async |connection: Arc<Connection>| client(&connection).cleanup_all(message).await;
            self.link.call("CleanupAll", call).await.map(drop)
        })
    }

    fn recv_tensor(&self, request: RecvTensor) -> Future<'_, (Tensor, bool)> {
        Box::pin(async move {
            let id = request.request_id;
            let received =
                self.link.call("RecvTensor", |connection| recv_tensor::recv_tensor(connection, request)).await?;
            if received.require_ack {
                acknowledge(&self.link, id).await;
            }
            Ok((received.tensor, received.is_dead))
        })
    }

    fn recv_tensors(&self, requests: Vec<RecvTensor>, deliver: Deliver) -> Future<'_, ()> {
        let call = |connection| recv_tensor::recv_tensors(connection, requests, deliver);
        Box::pin(self.link.call("RecvTensor", call))
    }

    fn open_tensor(&self, request: RecvTensor) -> Future<'_, OpenedTensor> {
        Box::pin(tensor_stream::open_tensor(self.stream_link.clone(), request))
    }

    fn recv_buf(&self, request: RecvBuf) -> Future<'_, Bytes> {
        Box::pin(async move {
            let message = buffers::encode_recv_buf(request);
            let call = async |connection: Arc<Connection>| client(&connection).recv_buf(message).await;
            buffers::decode_recv_buf_answer(self.link.call("RecvBuf", call).await?.into_inner())
        })
    }

    fn complete_group(&self, request: CompleteGroup) -> Future<'_, CompletedGroup> {
        Box::pin(async move {
            let message = collectives::encode_complete_group(request);
            let call = async |connection: Arc<Connection>| client(&connection).complete_group(message).await;
            let answer = self.link.call("CompleteGroup", call).await?.into_inner();
            Ok(collectives::decode_completed_group(answer))
        })
    }

    fn complete_instance(&self, request: CompleteInstance) -> Future<'_, i32> {
        Box::pin(async move {
            let message = collectives::encode_complete_instance(request);
            let call = async |connection: Arc<Connection>| client(&connection).complete_instance(message).await;
            Ok(self.link.call("CompleteInstance", call).await?.into_inner().source_rank)
        })
    }

    fn get_step_sequence(&self, graph_key: Vec<i64>) -> Future<'_, Vec<(i64, u64)>> {
        Box::pin(async move {
            let message = pb::GetStepSequenceRequest { graph_key };
            let call = async |connection: Arc<Connection>| client(&connection).get_step_sequence(message).await;
            let answer = self.link.call("GetStepSequence", call).await?.into_inner();
            Ok(collectives::decode_step_sequence(answer))
        })
    }

    fn logging(&self, request: Logging) -> Future<'_, Vec<(u64, Vec<TransferStats>)>> {
        Box::pin(async move {
            let message = stats::encode_logging(request);
            let call = async |connection: Arc<Connection>| client(&connection).logging(message).await;
            Ok(stats::decode_logging_answer(self.link.call("Logging", call).await?.into_inner()))
        })
    }
}

/// Tells a task that keeps a tensor until then that it has arrived.
pub(super) async fn acknowledge(link: &Link, id: i64) {
    let message = pb::MarkRecvFinishedRequest { request_id: id };
    let call = async |connection: Arc<Connection>| client(&connection).mark_recv_finished(message).await;
    if let Err(error) = link.call("MarkRecvFinished", call).await {
        tracing::debug!("{} was not told that its tensor has arrived: {error}", link.name());
    }
}
