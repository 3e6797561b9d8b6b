//! A master that a session of ours talks to.

use crate::client::link::{LEAST_PATIENCE, Line, Link};
use crate::client::{call, channel};
use crate::server::{MAX_MESSAGE, TENSOR_WINDOW};
use crate::wire::extensions::{RUN_CALLABLE, RUN_STEP};
use crate::wire::{self, stats};
use cluster::{CallableOptions, DeviceAttributes, RunMetadata, RunStep, RunStepAnswer, SessionConfig};
use graph::GraphDef;
use proto::tensorflow as pb;
use proto::tensorflow::master_service_client::MasterServiceClient;
use status::Result;
use std::sync::Arc;
use std::time::Duration;
use tensor::Tensor;
use tonic::transport::Channel;

/// A far master.
#[derive(Clone)]
pub struct MasterClient {
    pub(crate) link: Arc<Link>,
}

fn client(line: &Line) -> MasterServiceClient<Channel> {
    MasterServiceClient::new(line.channel.clone())
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE)
}

impl MasterClient {
    /// A master at `host:port` that may be silent for so long; must be called inside a tokio runtime.
    pub fn connect(address: &str, patience: Duration) -> Result<MasterClient> {
        let (to, patience) = (address.to_string(), patience.max(LEAST_PATIENCE));
        let dial = Box::new(move || channel::connect_watched(&to, patience, TENSOR_WINDOW));
        dial()?; // a bad address shows here, not in the middle of a step
        Ok(MasterClient { link: Arc::new(Link::to_master(address.to_string(), patience, dial)) })
    }

    /// Waits for a master that may not be up yet, no longer than `limit`, to call this method.
    pub async fn ready(&self, limit: Duration, method: &str) -> Result<()> {
        self.link.ready(limit, method).await
    }

    /// Opens a session; gives its handle and the version of its graph.
    pub async fn create_session(&self, graph: &GraphDef, config: &SessionConfig) -> Result<(String, i64)> {
        let request = pb::CreateSessionRequest {
            graph_def: Some(graph::wire::encode_graph(graph)),
            config: Some(wire::encode_session_config(config)),
            target: format!("grpc://{}", self.link.address),
        };
        let answer = self
            .link
            .call("CreateSession", async |line| client(&line).create_session(request).await)
            .await?
            .into_inner();
        Ok((answer.session_handle, answer.graph_version))
    }

    /// Adds nodes to a session's graph; gives its new version.
    pub async fn extend_session(&self, session: &str, graph: &GraphDef, version: i64) -> Result<i64> {
        let request = pb::ExtendSessionRequest {
            session_handle: session.to_string(),
            graph_def: Some(graph::wire::encode_graph(graph)),
            current_graph_version: version,
        };
        let answer = self.link.call("ExtendSession", async |line| client(&line).extend_session(request).await).await?;
        Ok(answer.into_inner().new_graph_version)
    }

    /// Runs a step.
    pub async fn run_step(&self, session: &str, step: RunStep) -> Result<RunStepAnswer> {
        let (request, form) = (call::within(call::post(RUN_STEP), step.options.timeout), &wire::RUN_STEP_ANSWER);
        let message = wire::encode_run_step(session, step)?;
        let call = async |line: Arc<Line>| call::call(&line, request, message, form).await;
        let (answer, content) = self.link.call("RunStep", call).await?.0.open();
        wire::decode_run_step_answer(answer, content)
    }

    /// Announces a step that will be run piece by piece.
    pub async fn partial_run_setup(
        &self,
        session: &str,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<String> {
        let request = pb::PartialRunSetupRequest {
            session_handle: session.to_string(),
            feed: feeds,
            fetch: fetches,
            target: targets,
            request_id: 0,
        };
        let answer =
            self.link.call("PartialRunSetup", async |line| client(&line).partial_run_setup(request).await).await?;
        Ok(answer.into_inner().partial_run_handle)
    }

    /// Prepares a step; gives its handle.
    pub async fn make_callable(&self, session: &str, options: CallableOptions) -> Result<i64> {
        let request = pb::MakeCallableRequest {
            session_handle: session.to_string(),
            options: Some(wire::encode_callable_options(options)),
            ..pb::MakeCallableRequest::default()
        };
        let answer = self.link.call("MakeCallable", async |line| client(&line).make_callable(request).await).await?;
        Ok(answer.into_inner().handle)
    }

    /// Runs a prepared step.
    pub async fn run_callable(
        &self,
        session: &str,
        handle: i64,
        feeds: Vec<Tensor>,
    ) -> Result<(Vec<Tensor>, RunMetadata)> {
        let message = wire::encode_run_callable(session, handle, &feeds)?;
        let form = &wire::RUN_CALLABLE_ANSWER;
        let call = async |line: Arc<Line>| call::call(&line, call::post(RUN_CALLABLE), message, form).await;
        let (answer, content): (pb::RunCallableResponse, _) = self.link.call("RunCallable", call).await?.0.open();
        let tensors = wire::tensors_with_content(answer.fetch, content)?;
        Ok((tensors, stats::decode_run_metadata(answer.metadata.unwrap_or_default())?))
    }

    /// Forgets a prepared step.
    pub async fn release_callable(&self, session: &str, handle: i64) -> Result<()> {
        let request = pb::ReleaseCallableRequest { session_handle: session.to_string(), handle };
        self.link.call("ReleaseCallable", async |line| client(&line).release_callable(request).await).await.map(drop)
    }

    /// Ends a session.
    pub async fn close_session(&self, session: &str) -> Result<()> {
        let request = pb::CloseSessionRequest { session_handle: session.to_string() };
        self.link.call("CloseSession", async |line| client(&line).close_session(request).await).await.map(drop)
    }

    /// The devices of a session.
    pub async fn list_devices(&self, session: &str) -> Result<Vec<DeviceAttributes>> {
        let request = pb::ListDevicesRequest { session_handle: session.to_string() };
        let answer =
            self.link.call("ListDevices", async |line| client(&line).list_devices(request).await).await?.into_inner();
        Ok(answer.local_device.into_iter().chain(answer.remote_device).map(wire::decode_device).collect())
    }

    /// Ends all sessions of the master and forgets containers.
    pub async fn reset(&self, containers: Vec<String>) -> Result<()> {
        let request = pb::ResetRequest { container: containers, device_filters: Vec::new() };
        self.link.call("Reset", async |line| client(&line).reset(request).await).await.map(drop)
    }
}
