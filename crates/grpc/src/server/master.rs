//! MasterService: what clients call.

use crate::server::recent::Recent;
use crate::wire;
use crate::wire::{answers, stats};
use bytes::Bytes;
use cluster::Master;
use proto::tensorflow as pb;
use proto::tensorflow::master_service_server::MasterService;
use status::Result;
use std::sync::Arc;
use tensor::Buffer;
use tonic::{Request, Response, Status};

type Answer<T> = std::result::Result<Response<T>, Status>;

pub(crate) struct Service {
    pub master: Arc<Master>,
    pub recent: Recent,
}

fn answer<T>(result: Result<T>) -> Answer<T> {
    result.map(Response::new).map_err(wire::status)
}

impl Service {
    /// Runs a step; `content` gives the contents that came apart from the feeds' messages.
    pub async fn step(
        &self,
        request: pb::RunStepRequest,
        content: impl FnMut(usize) -> Option<Buffer>,
    ) -> Result<Vec<Bytes>> {
        self.recent.check(request.request_id, "RunStep (Master)", || wire::describe_run_step(&request))?;
        let session = request.session_handle.clone();
        let step = wire::run_step(request, content)?;
        wire::run_step_answer(self.master.run_step(&session, step).await?)
    }

    /// Runs a callable likewise.
    pub async fn callable(
        &self,
        request: pb::RunCallableRequest,
        content: impl FnMut(usize) -> Option<Buffer>,
    ) -> Result<Vec<Bytes>> {
        let feeds = wire::tensors_with_content(request.feed, content)?;
        let (tensors, metadata) = self.master.run_callable(&request.session_handle, request.handle, feeds).await?;
        let metadata = Some(stats::run_metadata(metadata));
        answers::answer(&tensors, &pb::RunCallableResponse { fetch: Vec::new(), metadata })
    }
}

#[tonic::async_trait]
impl MasterService for Service {
    async fn create_session(&self, request: Request<pb::CreateSessionRequest>) -> Answer<pb::CreateSessionResponse> {
        let request = request.into_inner();
        let call = async {
            let graph = graph::wire::decode_graph(request.graph_def.unwrap_or_default())?;
            let config = wire::session_config(request.config.unwrap_or_default(), request.target)?;
            let session_handle = self.master.create_session(graph, config).await?;
            Ok(pb::CreateSessionResponse { session_handle, graph_version: 0 })
        };
        answer(call.await)
    }

    async fn extend_session(&self, request: Request<pb::ExtendSessionRequest>) -> Answer<pb::ExtendSessionResponse> {
        let request = request.into_inner();
        let graph = graph::wire::decode_graph(request.graph_def.unwrap_or_default()).map_err(wire::status)?;
        let version = self.master.extend_session(&request.session_handle, &graph, request.current_graph_version);
        answer(version.map(|new_graph_version| pb::ExtendSessionResponse { new_graph_version }))
    }

    async fn partial_run_setup(
        &self,
        request: Request<pb::PartialRunSetupRequest>,
    ) -> Answer<pb::PartialRunSetupResponse> {
        let r = request.into_inner();
        let handle = self.master.partial_run_setup(&r.session_handle, r.feed, r.fetch, r.target).await;
        answer(handle.map(|partial_run_handle| pb::PartialRunSetupResponse { partial_run_handle }))
    }

    async fn run_step(&self, _: Request<pb::RunStepRequest>) -> Answer<pb::RunStepResponse> {
        Err(Status::internal("RunStep is answered by the bulk service"))
    }

    async fn close_session(&self, request: Request<pb::CloseSessionRequest>) -> Answer<pb::CloseSessionResponse> {
        let closed = self.master.close_session(&request.into_inner().session_handle).await;
        answer(closed.map(|()| pb::CloseSessionResponse {}))
    }

    async fn list_devices(&self, request: Request<pb::ListDevicesRequest>) -> Answer<pb::ListDevicesResponse> {
        let devices = self.master.list_devices(&request.into_inner().session_handle).await;
        answer(devices.map(|devices| pb::ListDevicesResponse {
            local_device: devices.into_iter().map(wire::device_attributes).collect(),
            remote_device: Vec::new(),
        }))
    }

    async fn reset(&self, request: Request<pb::ResetRequest>) -> Answer<pb::ResetResponse> {
        let reset = self.master.reset(request.into_inner().container).await;
        answer(reset.map(|()| pb::ResetResponse {}))
    }

    async fn make_callable(&self, request: Request<pb::MakeCallableRequest>) -> Answer<pb::MakeCallableResponse> {
        let request = request.into_inner();
        let options = wire::callable_options(request.options.unwrap_or_default());
        let handle = self.master.make_callable(&request.session_handle, options).await;
        answer(handle.map(|handle| pb::MakeCallableResponse { handle }))
    }

    async fn run_callable(&self, _: Request<pb::RunCallableRequest>) -> Answer<pb::RunCallableResponse> {
        Err(Status::internal("RunCallable is answered by the bulk service"))
    }

    async fn release_callable(
        &self,
        request: Request<pb::ReleaseCallableRequest>,
    ) -> Answer<pb::ReleaseCallableResponse> {
        let request = request.into_inner();
        let released = self.master.release_callable(&request.session_handle, request.handle);
        answer(released.map(|()| pb::ReleaseCallableResponse {}))
    }
}
