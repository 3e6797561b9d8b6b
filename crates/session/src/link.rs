//! The master behind a session: in this process, or behind an address.

use crate::block::{block_on, timed_out};
use crate::differentiate;
use cluster::{
    CallableOptions, ClusterSpec, DeviceAttributes, Master, NoPeers, RunMetadata, RunStep, RunStepAnswer,
    SessionConfig, Task, Worker, WorkerOptions, host_and_port,
};
use graph::GraphDef;
use grpc::{MasterClient, PATIENCE};
use status::{Result, internal, invalid, not_found};
use std::sync::Arc;
use std::time::Duration;
use tensor::Tensor;
use tokio::runtime::Runtime;

pub(crate) enum Link {
    Near(Arc<Master>),
    Far { client: Box<MasterClient>, runtime: Runtime, connect_timeout: Duration },
}

/// How long a server that is not up yet is waited for, if the session says nothing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a far master may take to hear that a session is over.
const FAREWELL: Duration = Duration::from_secs(2);

impl Link {
    /// A cluster of one task in this process.
    pub fn near(config: &SessionConfig) -> Link {
        let task = Task { job: "localhost".to_string(), index: 0 };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let or_all = |count: usize| if count == 0 { processors } else { count };
        let devices = config.cpu_devices();
        Link::Near(Master::new(Worker::new(WorkerOptions {
            cluster: ClusterSpec::new().with_task(&task.job, 0, "localhost:0").unwrap_or_default(),
            task,
            registry: ops::registry(),
            devices,
            inter_op_threads: or_all(config.inter_op_threads),
            intra_op_threads: or_all(config.intra_op_threads),
            peers: Arc::new(NoPeers),
            differentiate: Some(differentiate()),
            sync_policy: Default::default(),
            extensions: config.with_device_counts(config.extensions.clone()),
        })))
    }

    /// The master that a target names.
    pub fn to(target: &str, config: &SessionConfig) -> Result<Link> {
        match target.split_once("://") {
            _ if target.is_empty() => Ok(Link::near(config)),
            Some(("grpc", address)) => Link::far(address, config),
            None if target.contains(':') => Link::far(target, config),
            _ => Err(not_found!(
                "No session factory registered for the given session options: {{target: \"{target}\"}}; \
                 a target is grpc://host:port, host:port, or empty for a session in this process"
            )),
        }
    }

    fn far(address: &str, config: &SessionConfig) -> Result<Link> {
        if host_and_port(address).is_none() {
            return Err(invalid!(
                "Could not interpret \"{address}\" as a host-port pair. Expected grpc://host:port with a number for the \
                 port, such as grpc://127.0.0.1:2222 or grpc://[::1]:2222"
            ));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("flowgrid-session")
            .enable_all()
            .build()
            .map_err(|error| internal!("Cannot start threads: {error}"))?;
        let client = {
            let _entered = runtime.enter();
            Box::new(MasterClient::connect(address, config.peer_timeout.unwrap_or(PATIENCE))?)
        };
        let connect_timeout = config.connect_timeout.or(config.step_timeout).unwrap_or(CONNECT_TIMEOUT);
        Ok(Link::Far { client, runtime, connect_timeout })
    }

    pub fn create(&self, graph: GraphDef, config: &SessionConfig) -> Result<(String, i64)> {
        match self {
            Link::Near(master) => Ok((block_on(master.create_session(graph, config.clone()), None)?, 0)),
            Link::Far { client, runtime, connect_timeout } => runtime.block_on(async {
                client.ready(*connect_timeout, "CreateSession").await?;
                client.create_session(&graph, config).await
            }),
        }
    }

    pub fn extend(&self, session: &str, graph: &GraphDef, version: i64) -> Result<i64> {
        match self {
            Link::Near(master) => master.extend_session(session, graph, version),
            Link::Far { client, runtime, .. } => runtime.block_on(client.extend_session(session, graph, version)),
        }
    }

    pub fn run(&self, session: &str, step: RunStep, limit: Option<Duration>) -> Result<RunStepAnswer> {
        let limit = step.options.timeout.or(limit);
        match self {
            Link::Near(master) => block_on(master.run_step(session, step), limit),
            Link::Far { client, runtime, .. } => runtime.block_on(bounded(client.run_step(session, step), limit)),
        }
    }

    pub fn partial_run_setup(
        &self,
        session: &str,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<String> {
        match self {
            Link::Near(master) => block_on(master.partial_run_setup(session, feeds, fetches, targets), None),
            Link::Far { client, runtime, .. } => {
                runtime.block_on(client.partial_run_setup(session, feeds, fetches, targets))
            }
        }
    }

    pub fn make_callable(&self, session: &str, options: CallableOptions) -> Result<i64> {
        match self {
            Link::Near(master) => block_on(master.make_callable(session, options), None),
            Link::Far { client, runtime, .. } => runtime.block_on(client.make_callable(session, options)),
        }
    }

    pub fn run_callable(
        &self,
        session: &str,
        handle: i64,
        feeds: Vec<Tensor>,
        limit: Option<Duration>,
    ) -> Result<(Vec<Tensor>, RunMetadata)> {
        match self {
            Link::Near(master) => block_on(master.run_callable(session, handle, feeds), limit),
            Link::Far { client, runtime, .. } => {
                runtime.block_on(bounded(client.run_callable(session, handle, feeds), limit))
            }
        }
    }

    pub fn release_callable(&self, session: &str, handle: i64) -> Result<()> {
        match self {
            Link::Near(master) => master.release_callable(session, handle),
            Link::Far { client, runtime, .. } => {
                runtime.block_on(bounded(client.release_callable(session, handle), Some(FAREWELL)))
            }
        }
    }

    pub fn close(&self, session: &str) -> Result<()> {
        match self {
            Link::Near(master) => block_on(master.close_session(session), None),
            Link::Far { client, runtime, .. } => {
                runtime.block_on(bounded(client.close_session(session), Some(FAREWELL)))
            }
        }
    }

    pub fn list_devices(&self, session: &str) -> Result<Vec<DeviceAttributes>> {
        match self {
            Link::Near(master) => block_on(master.list_devices(session), None),
            Link::Far { client, runtime, .. } => runtime.block_on(client.list_devices(session)),
        }
    }

    pub fn reset(&self, containers: Vec<String>) -> Result<()> {
        match self {
            Link::Near(master) => block_on(master.reset(containers), None),
            Link::Far { client, runtime, connect_timeout } => runtime.block_on(async {
                client.ready(*connect_timeout, "Reset").await?;
                client.reset(containers).await
            }),
        }
    }
}

/// Gives up when the time is over; dropping the call cancels it on the server.
async fn bounded<T>(call: impl Future<Output = Result<T>>, limit: Option<Duration>) -> Result<T> {
    match limit {
        None => call.await,
        Some(limit) => tokio::time::timeout(limit, call).await.unwrap_or_else(|_| Err(timed_out())),
    }
}
