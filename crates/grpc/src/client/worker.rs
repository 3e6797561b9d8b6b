//! Another task's WorkerService.

use crate::client::ended::{self, Added, Ended};
use crate::client::link::{Line, Link};
use crate::client::{bulk, tensor_stream, together};
use crate::server::{ENDED, MAX_MESSAGE, RUN_GRAPH, TAKES_ENDED};
use crate::wire::{self, stats};
use cluster::{
    CreateWorkerSession, DeviceAttributes, Future, Logging, OpenedTensor, RecvTensor, RegisterGraph, RunGraph,
    RunGraphAnswer, TransferStats, WorkerClient,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use proto::tensorflow as pb;
use proto::tensorflow::worker_service_client::WorkerServiceClient;
use rand::Rng;
use status::Result;
use std::sync::Arc;
use std::time::Duration;
use tensor::Tensor;
use tonic::Extensions;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;

/// A far task.
pub(crate) struct FarWorker {
    pub link: Arc<Link>,
    /// For tensors that are read slowly: what is under way of them must not stand before other answers.
    pub slow: Arc<Link>,
    /// Steps that are over, of which the task hears with the next one.
    pub ended: Arc<Ended>,
}

fn client(line: &Line) -> WorkerServiceClient<Channel> {
    WorkerServiceClient::new(line.channel.clone())
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE)
}

impl WorkerClient for FarWorker {
    fn get_status(&self) -> Future<'_, Vec<DeviceAttributes>> {
        Box::pin(async move {
            let call = async |line: Arc<Line>| client(&line).get_status(pb::GetStatusRequest {}).await;
            let answer = self.link.call("GetStatus", call).await?.into_inner();
            Ok(answer.device_attributes.into_iter().map(wire::decode_device).collect())
        })
    }

    fn create_session(&self, request: CreateWorkerSession) -> Future<'_, ()> {
        Box::pin(async move {
            let message = wire::encode_create_worker_session(request);
            let call = async |line: Arc<Line>| client(&line).create_worker_session(message).await;
            self.link.call("CreateWorkerSession", call).await.map(drop)
        })
    }

    fn delete_session(&self, session: String) -> Future<'_, ()> {
        Box::pin(async move {
            // Its master may be about to end.
            ended::tell_all(&self.link, &self.ended).await;
            let mut request = tonic::Request::new(pb::DeleteWorkerSessionRequest { session_handle: session });
            request.set_timeout(Duration::from_secs(10));
            let call = async |line: Arc<Line>| client(&line).delete_worker_session(request).await;
            self.link.call("DeleteWorkerSession", call).await.map(drop)
        })
    }

    fn register_graph(&self, request: RegisterGraph) -> Future<'_, String> {
        Box::pin(async move {
            let message = wire::encode_register_graph(request);
            let call = async |line: Arc<Line>| client(&line).register_graph(message).await;
            Ok(self.link.call("RegisterGraph", call).await?.into_inner().graph_handle)
        })
    }

    fn deregister_graph(&self, session: String, graph: String) -> Future<'_, ()> {
        Box::pin(async move {
            let message = wire::encode_deregister_graph(session, graph);
            let call = async |line: Arc<Line>| client(&line).deregister_graph(message).await;
            self.link.call("DeregisterGraph", call).await.map(drop)
        })
    }

    fn run_graph(&self, request: RunGraph) -> Future<'_, RunGraphAnswer> {
        Box::pin(async move {
            let (mut post, form) = (bulk::post(RUN_GRAPH), &wire::RUN_GRAPH_ANSWER);
            let message = wire::encode_run_graph(request, request_id())?;
            let mut ended = self.ended.take();
            if let Some(steps) = ended.steps() {
                post = post.header(ENDED, steps);
            }
            let call = async |line: Arc<Line>| bulk::call(&line, post, message, form).await;
            let (answer, headers) = self.link.call("RunGraph", call).await?;
            ended.are_told(headers.contains_key(TAKES_ENDED));
            let (answer, content) = answer.open();
            wire::decode_run_graph_answer(answer, content, headers.contains_key(wire::DERIVED_HEADER))
        })
    }

    fn cleanup_graph(&self, step_id: u64) -> Future<'_, ()> {
        Box::pin(async move {
            match self.ended.add(step_id) {
                Added::Refused => cleanup_graph(&self.link, step_id, None).await,
                Added::First => {
                    // Not part of this call: others will add to the list and go away. It ends with the list.
                    tokio::spawn(ended::tell_in_time(self.link.clone(), self.ended.clone()));
                    Ok(())
                }
                Added::Next => Ok(()),
            }
        })
    }

    fn cleanup_all(&self, containers: Vec<String>) -> Future<'_, ()> {
        Box::pin(async move {
            let message = pb::CleanupAllRequest { container: containers };
            let call = async |line: Arc<Line>| client(&line).cleanup_all(message).await;
            self.link.call("CleanupAll", call).await.map(drop)
        })
    }

    fn recv_tensor(&self, request: RecvTensor) -> Future<'_, (Tensor, bool)> {
        Box::pin(async move {
            let id = request_id();
            let received = self.link.call("RecvTensor", |line| together::recv_tensor(line, id, request)).await?;
            if received.require_ack {
                acknowledge(&self.link, id).await;
            }
            Ok((received.tensor, received.is_dead))
        })
    }

    fn logging(&self, request: Logging) -> Future<'_, Vec<(u64, Vec<TransferStats>)>> {
        Box::pin(async move {
            let message = stats::encode_logging(request);
            let call = async |line: Arc<Line>| client(&line).logging(message).await;
            Ok(stats::decode_logging_answer(self.link.call("Logging", call).await?.into_inner()))
        })
    }

    fn open_tensor(&self, request: RecvTensor) -> Future<'_, OpenedTensor> {
        Box::pin(tensor_stream::open_tensor(self.slow.clone(), request_id(), request))
    }
}

/// Ends a step, and others besides where the task takes several at once.
pub(super) async fn cleanup_graph(link: &Link, step_id: u64, others: Option<HeaderValue>) -> Result<()> {
    let headers = HeaderMap::from_iter(others.map(|others| (HeaderName::from_static(ENDED), others)));
    let message = pb::CleanupGraphRequest { step_id: step_id as i64 };
    let request = tonic::Request::from_parts(MetadataMap::from_headers(headers), Extensions::default(), message);
    link.call("CleanupGraph", async |line: Arc<Line>| client(&line).cleanup_graph(request).await).await.map(drop)
}

/// Tells a task that keeps a tensor until then that it is here.
pub(crate) async fn acknowledge(link: &Link, id: i64) {
    let message = pb::MarkRecvFinishedRequest { request_id: id };
    let call = async |line: Arc<Line>| client(&line).mark_recv_finished(message).await;
    if let Err(error) = link.call("MarkRecvFinished", call).await {
        tracing::debug!("{} was not told that its tensor arrived: {error}", link.name());
    }
}

/// Tells a request from a repetition of itself; never zero.
fn request_id() -> i64 {
    rand::rng().random_range(1..=i64::MAX)
}
