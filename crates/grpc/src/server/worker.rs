//! WorkerService: the calls of masters and of other workers.

use crate::server::dispatch::{Methods, unary, unknown_method};
use crate::server::recv_tensor::{now_micros, recv_tensor, recv_tensors};
use crate::server::run_graph::run_graph;
use crate::wire::{self, buffers, collectives, extensions, stats};
use cluster::WorkerClient;
use proto::tensorflow as pb;
use status::{Result, unimplemented_op};
use std::sync::Arc;
use tonic::body::Body;

type Worker = Arc<dyn WorkerClient>;

/// The methods of a worker.
#[derive(Clone)]
pub(super) struct WorkerMethods(pub Worker);

impl Methods for WorkerMethods {
    const SERVICE: &'static str = "tensorflow.WorkerService";

    async fn answer(self, method: &str, request: http::Request<Body>) -> Result<http::Response<Body>> {
        let worker = self.0;
        match method {
            "GetStatus" => unary(request, worker, get_status).await,
            "CreateWorkerSession" => unary(request, worker, create_worker_session).await,
            "DeleteWorkerSession" => unary(request, worker, delete_worker_session).await,
            "RegisterGraph" => unary(request, worker, register_graph).await,
            "DeregisterGraph" => unary(request, worker, deregister_graph).await,
            "RunGraph" => run_graph(&*worker, request).await,
            "CleanupGraph" => {
                let others = extensions::ended_steps(request.headers());
                unary(request, (worker, others), cleanup_graph).await
            }
            "CleanupAll" => unary(request, worker, cleanup_all).await,
            "RecvTensor" => recv_tensor(&*worker, request).await,
            "RecvTensors" => recv_tensors(worker, request).await,
            "MarkRecvFinished" => unary(request, worker, mark_recv_finished).await,
            "Logging" => unary(request, worker, logging).await,
            // TensorFlow's text.
            "Tracing" => Err(unimplemented_op!("Tracing")),
            "RecvBuf" => unary(request, worker, recv_buf).await,
            "GetStepSequence" => unary(request, worker, get_step_sequence).await,
            "CompleteGroup" => unary(request, worker, complete_group).await,
            "CompleteInstance" => unary(request, worker, complete_instance).await,
            _ => Err(unknown_method()),
        }
    }
}

async fn get_status(worker: Worker, _: pb::GetStatusRequest) -> Result<pb::GetStatusResponse> {
    let devices = worker.get_status().await?;
    Ok(pb::GetStatusResponse { device_attributes: devices.into_iter().map(wire::device_attributes).collect() })
}

async fn create_worker_session(
    worker: Worker,
    request: pb::CreateWorkerSessionRequest,
) -> Result<pb::CreateWorkerSessionResponse> {
    worker.create_session(wire::create_worker_session(request)?).await?;
    Ok(pb::CreateWorkerSessionResponse {})
}

async fn delete_worker_session(
    worker: Worker,
    request: pb::DeleteWorkerSessionRequest,
) -> Result<pb::DeleteWorkerSessionResponse> {
    worker.delete_session(request.session_handle).await?;
    Ok(pb::DeleteWorkerSessionResponse {})
}

async fn register_graph(worker: Worker, request: pb::RegisterGraphRequest) -> Result<pb::RegisterGraphResponse> {
    let graph_handle = worker.register_graph(wire::register_graph(request)?).await?;
    Ok(pb::RegisterGraphResponse { graph_handle })
}

async fn deregister_graph(worker: Worker, request: pb::DeregisterGraphRequest) -> Result<pb::DeregisterGraphResponse> {
    let (session, graph) = wire::deregister_graph(request);
    worker.deregister_graph(session, graph).await?;
    Ok(pb::DeregisterGraphResponse {})
}

async fn cleanup_graph(
    (worker, mut steps): (Worker, Vec<u64>),
    request: pb::CleanupGraphRequest,
) -> Result<pb::CleanupGraphResponse> {
    steps.push(request.step_id as u64);
    worker.cleanup_graphs(&steps).await?;
    Ok(pb::CleanupGraphResponse {})
}

async fn cleanup_all(worker: Worker, request: pb::CleanupAllRequest) -> Result<pb::CleanupAllResponse> {
    worker.cleanup_all(request.container).await?;
    Ok(pb::CleanupAllResponse {})
}

async fn mark_recv_finished(_: Worker, _: pb::MarkRecvFinishedRequest) -> Result<pb::MarkRecvFinishedResponse> {
    Ok(pb::MarkRecvFinishedResponse {})
}

async fn logging(worker: Worker, request: pb::LoggingRequest) -> Result<pb::LoggingResponse> {
    worker.logging(stats::logging(request)).await.map(stats::logging_answer)
}

async fn recv_buf(worker: Worker, request: pb::RecvBufRequest) -> Result<pb::RecvBufResponse> {
    let buffer = worker.recv_buf(buffers::recv_buf(request)).await?;
    Ok(buffers::recv_buf_answer(buffer, now_micros()))
}

async fn complete_group(worker: Worker, request: pb::CompleteGroupRequest) -> Result<pb::CompleteGroupResponse> {
    worker.complete_group(collectives::complete_group(request)).await.map(collectives::completed_group)
}

async fn complete_instance(
    worker: Worker,
    request: pb::CompleteInstanceRequest,
) -> Result<pb::CompleteInstanceResponse> {
    let instance_key = request.instance_key;
    let source_rank = worker.complete_instance(collectives::complete_instance(request)?).await?;
    Ok(pb::CompleteInstanceResponse { instance_key, source_rank })
}

async fn get_step_sequence(worker: Worker, request: pb::GetStepSequenceRequest) -> Result<pb::GetStepSequenceResponse> {
    worker.get_step_sequence(request.graph_key).await.map(collectives::step_sequence)
}
