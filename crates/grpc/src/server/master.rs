//! MasterService: the calls of clients.

use crate::server::body::{self, NO_TENSORS, Pieces};
use crate::server::dispatch::{Methods, unary, unknown_method};
use crate::wire::{self, stats, tensor_list};
use cluster::{Master, RequestDedup};
use proto::tensorflow as pb;
use status::Result;
use std::sync::Arc;
use tonic::body::Body;

/// The methods of a master.
#[derive(Clone)]
pub(super) struct MasterMethods {
    pub master: Arc<Master>,
    pub requests: Arc<RequestDedup>,
}

impl Methods for MasterMethods {
    const SERVICE: &'static str = "tensorflow.MasterService";

    async fn answer(self, method: &str, request: http::Request<Body>) -> Result<http::Response<Body>> {
        let master = self.master;
        match method {
            "CreateSession" => unary(request, master, create_session).await,
            "ExtendSession" => unary(request, master, extend_session).await,
            "PartialRunSetup" => unary(request, master, partial_run_setup).await,
            "RunStep" => run_step(&master, &self.requests, request.into_body()).await,
            "CloseSession" => unary(request, master, close_session).await,
            "ListDevices" => unary(request, master, list_devices).await,
            "Reset" => unary(request, master, reset).await,
            "MakeCallable" => unary(request, master, make_callable).await,
            "RunCallable" => run_callable(&master, request.into_body()).await,
            "ReleaseCallable" => unary(request, master, release_callable).await,
            _ => Err(unknown_method()),
        }
    }
}

async fn create_session(master: Arc<Master>, request: pb::CreateSessionRequest) -> Result<pb::CreateSessionResponse> {
    let graph = graph::wire::decode_graph(request.graph_def.unwrap_or_default())?;
    let config = wire::session_config(request.config.unwrap_or_default(), request.target)?;
    let session_handle = master.create_session(graph, config).await?;
    Ok(pb::CreateSessionResponse { session_handle, graph_version: 0 })
}

async fn extend_session(master: Arc<Master>, request: pb::ExtendSessionRequest) -> Result<pb::ExtendSessionResponse> {
    let graph = graph::wire::decode_graph(request.graph_def.unwrap_or_default())?;
    let new_graph_version = master.extend_session(&request.session_handle, &graph, request.current_graph_version)?;
    Ok(pb::ExtendSessionResponse { new_graph_version })
}

async fn partial_run_setup(
    master: Arc<Master>,
    request: pb::PartialRunSetupRequest,
) -> Result<pb::PartialRunSetupResponse> {
    let pb::PartialRunSetupRequest { session_handle, feed, fetch, target, .. } = request;
    let partial_run_handle = master.partial_run_setup(&session_handle, feed, fetch, target).await?;
    Ok(pb::PartialRunSetupResponse { partial_run_handle })
}

/// Runs a step; feeds and fetches are not copied.
async fn run_step(master: &Master, requests: &RequestDedup, body: Body) -> Result<http::Response<Body>> {
    let (request, content) = body::read::<pb::RunStepRequest>(body, &wire::RUN_STEP).await?.open();
    let error_in_body = request.store_errors_in_response_body;
    let call = async {
        requests.check(request.request_id, "RunStep (Master)", || wire::describe_run_step(&request))?;
        let session = request.session_handle.clone();
        let step = wire::run_step(request, content)?;
        wire::run_step_answer(master.run_step(&session, step).await?)
    };
    let pieces = match call.await {
        Err(error) if error_in_body => tensor_list::encode_answer(NO_TENSORS, &wire::run_step_error(error))?,
        result => result?,
    };
    Ok(body::answer(Pieces::body(pieces)))
}

async fn close_session(master: Arc<Master>, request: pb::CloseSessionRequest) -> Result<pb::CloseSessionResponse> {
    master.close_session(&request.session_handle).await?;
    Ok(pb::CloseSessionResponse {})
}

async fn list_devices(master: Arc<Master>, request: pb::ListDevicesRequest) -> Result<pb::ListDevicesResponse> {
    let devices = master.list_devices(&request.session_handle).await?;
    let local_device = devices.into_iter().map(wire::device_attributes).collect();
    Ok(pb::ListDevicesResponse { local_device, remote_device: Vec::new() })
}

async fn reset(master: Arc<Master>, request: pb::ResetRequest) -> Result<pb::ResetResponse> {
    master.reset(request.container).await?;
    Ok(pb::ResetResponse {})
}

async fn make_callable(master: Arc<Master>, request: pb::MakeCallableRequest) -> Result<pb::MakeCallableResponse> {
    let options = wire::callable_options(request.options.unwrap_or_default());
    let handle = master.make_callable(&request.session_handle, options).await?;
    Ok(pb::MakeCallableResponse { handle })
}

/// Runs a callable; feeds and fetches are not copied.
async fn run_callable(master: &Master, body: Body) -> Result<http::Response<Body>> {
    let (request, content) = body::read::<pb::RunCallableRequest>(body, &wire::RUN_CALLABLE).await?.open();
    let feeds = wire::tensors_with_content(request.feed, content)?;
    let (tensors, metadata) = master.run_callable(&request.session_handle, request.handle, feeds).await?;
    let metadata = Some(stats::run_metadata(metadata));
    let pieces = tensor_list::encode_answer(&tensors, &pb::RunCallableResponse { fetch: Vec::new(), metadata })?;
    Ok(body::answer(Pieces::body(pieces)))
}

async fn release_callable(
    master: Arc<Master>,
    request: pb::ReleaseCallableRequest,
) -> Result<pb::ReleaseCallableResponse> {
    master.release_callable(&request.session_handle, request.handle)?;
    Ok(pb::ReleaseCallableResponse {})
}
