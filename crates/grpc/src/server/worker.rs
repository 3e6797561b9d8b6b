//! WorkerService: what masters and other workers call.

use crate::server::recent::Recent;
use crate::server::run::{self, ENDED};
use crate::server::transfer::now_micros;
use crate::wire;
use crate::wire::{buffers, stats};
use cluster::WorkerClient;
use proto::tensorflow as pb;
use proto::tensorflow::worker_service_server::WorkerService;
use status::{Result, unimplemented_op};
use std::sync::Arc;
use tonic::{Request, Response, Status};

type Answer<T> = std::result::Result<Response<T>, Status>;

pub(crate) struct Service {
    pub client: Arc<dyn WorkerClient>,
    pub recent: Arc<Recent>,
}

fn answer<T>(result: Result<T>) -> Answer<T> {
    result.map(Response::new).map_err(wire::status)
}

#[tonic::async_trait]
impl WorkerService for Service {
    async fn get_status(&self, _: Request<pb::GetStatusRequest>) -> Answer<pb::GetStatusResponse> {
        let devices = self.client.get_status().await;
        answer(devices.map(|devices| pb::GetStatusResponse {
            device_attributes: devices.into_iter().map(wire::device_attributes).collect(),
        }))
    }

    async fn create_worker_session(
        &self,
        request: Request<pb::CreateWorkerSessionRequest>,
    ) -> Answer<pb::CreateWorkerSessionResponse> {
        let request = wire::create_worker_session(request.into_inner()).map_err(wire::status)?;
        answer(self.client.create_session(request).await.map(|()| pb::CreateWorkerSessionResponse {}))
    }

    async fn delete_worker_session(
        &self,
        request: Request<pb::DeleteWorkerSessionRequest>,
    ) -> Answer<pb::DeleteWorkerSessionResponse> {
        let deleted = self.client.delete_session(request.into_inner().session_handle).await;
        answer(deleted.map(|()| pb::DeleteWorkerSessionResponse {}))
    }

    async fn register_graph(&self, request: Request<pb::RegisterGraphRequest>) -> Answer<pb::RegisterGraphResponse> {
        let request = wire::register_graph(request.into_inner()).map_err(wire::status)?;
        let handle = self.client.register_graph(request).await;
        answer(handle.map(|graph_handle| pb::RegisterGraphResponse { graph_handle }))
    }

    async fn deregister_graph(
        &self,
        request: Request<pb::DeregisterGraphRequest>,
    ) -> Answer<pb::DeregisterGraphResponse> {
        let (session, graph) = wire::deregister_graph(request.into_inner());
        let forgotten = self.client.deregister_graph(session, graph).await;
        answer(forgotten.map(|()| pb::DeregisterGraphResponse {}))
    }

    async fn run_graph(&self, _: Request<pb::RunGraphRequest>) -> Answer<pb::RunGraphResponse> {
        answer(Err(status::internal!("RunGraph is answered before this service sees it")))
    }

    async fn cleanup_graph(&self, request: Request<pb::CleanupGraphRequest>) -> Answer<pb::CleanupGraphResponse> {
        if let Some(others) = request.metadata().as_ref().get(ENDED) {
            run::forget(&*self.client, others).await;
        }
        let cleaned = self.client.cleanup_graph(request.into_inner().step_id as u64).await;
        answer(cleaned.map(|()| pb::CleanupGraphResponse {}))
    }

    async fn cleanup_all(&self, request: Request<pb::CleanupAllRequest>) -> Answer<pb::CleanupAllResponse> {
        let cleaned = self.client.cleanup_all(request.into_inner().container).await;
        answer(cleaned.map(|()| pb::CleanupAllResponse {}))
    }

    async fn recv_tensor(&self, request: Request<pb::RecvTensorRequest>) -> Answer<pb::RecvTensorResponse> {
        let received = self.client.recv_tensor(wire::recv_tensor(request.into_inner())).await;
        answer(received.and_then(wire::recv_tensor_answer))
    }

    async fn mark_recv_finished(
        &self,
        _: Request<pb::MarkRecvFinishedRequest>,
    ) -> Answer<pb::MarkRecvFinishedResponse> {
        answer(Ok(pb::MarkRecvFinishedResponse {}))
    }

    async fn logging(&self, request: Request<pb::LoggingRequest>) -> Answer<pb::LoggingResponse> {
        let noted = self.client.logging(stats::logging(request.into_inner())).await;
        answer(noted.map(stats::logging_answer))
    }

    async fn tracing(&self, _: Request<pb::TracingRequest>) -> Answer<pb::TracingResponse> {
        answer(Err(unimplemented_op!("Tracing")))
    }

    async fn recv_buf(&self, request: Request<pb::RecvBufRequest>) -> Answer<pb::RecvBufResponse> {
        let request = request.into_inner();
        let call = async {
            self.recent.check(request.request_id, "RecvBuf (GrpcWorker)", || buffers::describe(&request))?;
            let buffer = self.client.recv_buf(buffers::recv_buf(request)).await?;
            Ok(buffers::recv_buf_answer(buffer, now_micros()))
        };
        answer(call.await)
    }

    async fn get_step_sequence(&self, _: Request<pb::GetStepSequenceRequest>) -> Answer<pb::GetStepSequenceResponse> {
        answer(Err(unimplemented_op!("this task leads no collective group")))
    }

    async fn complete_group(&self, _: Request<pb::CompleteGroupRequest>) -> Answer<pb::CompleteGroupResponse> {
        answer(Err(unimplemented_op!("this task leads no collective group")))
    }

    async fn complete_instance(&self, _: Request<pb::CompleteInstanceRequest>) -> Answer<pb::CompleteInstanceResponse> {
        answer(Err(unimplemented_op!("this task leads no collective group")))
    }
}
