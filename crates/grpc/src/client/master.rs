//! The master of another process.

use crate::client::link::{Connection, LEAST_PATIENCE, Link, PATIENCE};
use crate::client::{call, channel};
use crate::runtime::polled_in;
use crate::server::{MAX_MESSAGE, TENSOR_WINDOW};
use crate::wire::extensions::{RUN_CALLABLE, RUN_STEP};
use crate::wire::{self, stats};
use cluster::{
    CallableOptions, DeviceAttributes, Future, MasterClient, RunMetadata, RunStep, RunStepAnswer, SessionConfig,
};
use graph::GraphDef;
use proto::tensorflow as pb;
use proto::tensorflow::master_service_client::MasterServiceClient;
use status::{Code, Error, Result};
use std::sync::Arc;
use std::time::Duration;
use tensor::Tensor;
use tokio::runtime::Handle;
use tonic::transport::Channel;

/// How long a master may take to answer that a session or a callable is over.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A master that is reached over gRPC. Its calls use the timers and sockets of one tokio runtime, and can be polled by any
/// executor.
pub struct GrpcMaster {
    pub(crate) link: Arc<Link>,
    pub(crate) runtime: Handle,
    pub(crate) options: GrpcMasterOptions,
}

/// The timeouts of a connection to a master.
#[derive(Clone, Copy, Debug)]
pub struct GrpcMasterOptions {
    /// Calls fail after this time without a sign of life from the server.
    pub patience: Duration,
    /// How long a new session waits for a server that is not up yet.
    pub connect_timeout: Duration,
    /// The timeout of steps that set none.
    pub step_timeout: Option<Duration>,
}

impl Default for GrpcMasterOptions {
    fn default() -> GrpcMasterOptions {
        GrpcMasterOptions { patience: PATIENCE, connect_timeout: Duration::from_secs(60), step_timeout: None }
    }
}

fn client(connection: &Connection) -> MasterServiceClient<Channel> {
    MasterServiceClient::new(connection.channel.clone())
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE)
}

impl GrpcMaster {
    /// The master at `host:port`. The connection is made at the first call.
    pub fn new(address: &str, runtime: Handle, options: GrpcMasterOptions) -> Result<GrpcMaster> {
        let options = GrpcMasterOptions { patience: options.patience.max(LEAST_PATIENCE), ..options };
        let (to, patience, inside) = (address.to_string(), options.patience, runtime.clone());
        let dial = Box::new(move || {
            let _inside = inside.enter();
            channel::connect_watched(&to, patience, TENSOR_WINDOW)
        });
        dial()?; // reports a malformed address now, and not in the middle of a step
        let link = Arc::new(Link::to_master(address.to_string(), patience, dial));
        Ok(GrpcMaster { link, runtime, options })
    }

    /// Waits for a master that may not be up yet, no longer than `limit`, to call this method.
    pub(crate) async fn ready(&self, limit: Duration, method: &str) -> Result<()> {
        self.link.ready(limit, method).await
    }

    /// Makes a call that any executor can poll.
    fn call<'a, T: 'a>(&'a self, call: impl std::future::Future<Output = Result<T>> + Send + 'a) -> Future<'a, T> {
        Box::pin(polled_in(&self.runtime, call))
    }

    async fn send_run_step(&self, session: &str, step: RunStep) -> Result<RunStepAnswer> {
        let (request, form) = (call::within(call::post(RUN_STEP), step.options.timeout), &wire::RUN_STEP_ANSWER);
        let message = wire::encode_run_step(session, step)?;
        let call = async |connection: Arc<Connection>| call::call(&connection, request, message, form).await;
        let (answer, content) = self.link.call("RunStep", call).await?.0.open();
        wire::decode_run_step_answer(answer, content)
    }

    async fn send_run_callable(
        &self,
        session: &str,
        handle: i64,
        feeds: Vec<Tensor>,
    ) -> Result<(Vec<Tensor>, RunMetadata)> {
        let message = wire::encode_run_callable(session, handle, &feeds)?;
        let form = &wire::RUN_CALLABLE_ANSWER;
        let call =
            async |connection: Arc<Connection>| call::call(&connection, call::post(RUN_CALLABLE), message, form).await;
        let (answer, content): (pb::RunCallableResponse, _) = self.link.call("RunCallable", call).await?.0.open();
        let tensors = wire::tensors_with_content(answer.fetch, content)?;
        Ok((tensors, stats::decode_run_metadata(answer.metadata.unwrap_or_default())?))
    }
}

impl MasterClient for GrpcMaster {
    fn create_session<'a>(&'a self, graph: GraphDef, config: &'a SessionConfig) -> Future<'a, (String, i64)> {
        self.call(async move {
            self.ready(self.options.connect_timeout, "CreateSession").await?;
            let request = pb::CreateSessionRequest {
                graph_def: Some(graph::wire::encode_graph(&graph)),
                config: Some(wire::encode_session_config(config)),
                target: format!("grpc://{}", self.link.address),
            };
            let call = async |connection: Arc<Connection>| client(&connection).create_session(request).await;
            let answer = self.link.call("CreateSession", call).await?.into_inner();
            Ok((answer.session_handle, answer.graph_version))
        })
    }

    fn extend_session<'a>(&'a self, session: &'a str, graph: GraphDef, version: i64) -> Future<'a, i64> {
        self.call(async move {
            let request = pb::ExtendSessionRequest {
                session_handle: session.to_string(),
                graph_def: Some(graph::wire::encode_graph(&graph)),
                current_graph_version: version,
            };
            let call = async |connection: Arc<Connection>| client(&connection).extend_session(request).await;
            Ok(self.link.call("ExtendSession", call).await?.into_inner().new_graph_version)
        })
    }

    fn run_step<'a>(&'a self, session: &'a str, step: RunStep) -> Future<'a, RunStepAnswer> {
        let limit = step.options.timeout.or(self.options.step_timeout);
        self.call(bounded(self.send_run_step(session, step), limit))
    }

    fn partial_run_setup<'a>(
        &'a self,
        session: &'a str,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Future<'a, String> {
        self.call(async move {
            let request = pb::PartialRunSetupRequest {
                session_handle: session.to_string(),
                feed: feeds,
                fetch: fetches,
                target: targets,
                request_id: 0,
            };
            let call = async |connection: Arc<Connection>| client(&connection).partial_run_setup(request).await;
            Ok(self.link.call("PartialRunSetup", call).await?.into_inner().partial_run_handle)
        })
    }

    fn make_callable<'a>(&'a self, session: &'a str, options: CallableOptions) -> Future<'a, i64> {
        self.call(async move {
            let request = pb::MakeCallableRequest {
                session_handle: session.to_string(),
                options: Some(wire::encode_callable_options(options)),
                ..pb::MakeCallableRequest::default()
            };
            let call = async |connection: Arc<Connection>| client(&connection).make_callable(request).await;
            Ok(self.link.call("MakeCallable", call).await?.into_inner().handle)
        })
    }

    fn run_callable<'a>(
        &'a self,
        session: &'a str,
        handle: i64,
        feeds: Vec<Tensor>,
    ) -> Future<'a, (Vec<Tensor>, RunMetadata)> {
        self.call(bounded(self.send_run_callable(session, handle, feeds), self.options.step_timeout))
    }

    fn release_callable<'a>(&'a self, session: &'a str, handle: i64) -> Future<'a, ()> {
        let call = async move {
            let request = pb::ReleaseCallableRequest { session_handle: session.to_string(), handle };
            let call = async |connection: Arc<Connection>| client(&connection).release_callable(request).await;
            self.link.call("ReleaseCallable", call).await.map(drop)
        };
        self.call(bounded(call, Some(CLOSE_TIMEOUT)))
    }

    fn close_session<'a>(&'a self, session: &'a str) -> Future<'a, ()> {
        let call = async move {
            let request = pb::CloseSessionRequest { session_handle: session.to_string() };
            let call = async |connection: Arc<Connection>| client(&connection).close_session(request).await;
            self.link.call("CloseSession", call).await.map(drop)
        };
        self.call(bounded(call, Some(CLOSE_TIMEOUT)))
    }

    fn list_devices<'a>(&'a self, session: &'a str) -> Future<'a, Vec<DeviceAttributes>> {
        self.call(async move {
            let request = pb::ListDevicesRequest { session_handle: session.to_string() };
            let call = async |connection: Arc<Connection>| client(&connection).list_devices(request).await;
            let answer = self.link.call("ListDevices", call).await?.into_inner();
            Ok(answer.local_device.into_iter().chain(answer.remote_device).map(wire::decode_device).collect())
        })
    }

    fn reset(&self, containers: Vec<String>) -> Future<'_, ()> {
        self.call(async move {
            self.ready(self.options.connect_timeout, "Reset").await?;
            let request = pb::ResetRequest { container: containers, device_filters: Vec::new() };
            let call = async |connection: Arc<Connection>| client(&connection).reset(request).await;
            self.link.call("Reset", call).await.map(drop)
        })
    }
}

/// Gives up when the time is over; dropping the call cancels it on the server.
async fn bounded<T>(call: impl std::future::Future<Output = Result<T>>, limit: Option<Duration>) -> Result<T> {
    match limit {
        None => call.await,
        Some(limit) => tokio::time::timeout(limit, call).await.unwrap_or_else(|_| Err(timed_out())),
    }
}

/// The error of a step whose time is over, in TensorFlow's words.
fn timed_out() -> Error {
    Error::new(Code::DeadlineExceeded, "Timed out waiting for notification")
}
