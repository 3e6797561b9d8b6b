//! A server: one task of a cluster, which serves clients and other tasks.

use crate::runtime::OwnedRuntime;
use crate::server_master::ServerMaster;
use crate::target::Connection;
use crate::{ServerCounters, Session};
use cluster::{ClusterSpec, Master, SessionConfig, Task, Worker, WorkerOptions};
use durable::DurableVariables;
use graph::Graph;
use grpc::{GrpcTransport, ServerDef, Serving, TokioRuntime};
use membership::SyncPolicy;
use op::Extensions;
use status::{Result, invalid, unavailable};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// All tasks of the cluster.
    pub cluster: ClusterSpec,
    /// The task that this server is.
    pub task: Task,
    /// The interface on which it listens, such as `0.0.0.0` for all; by default the host of its own address.
    pub bind: Option<String>,
    /// How many CPU devices it has.
    pub devices: usize,
    /// How many threads run heavy ops; zero for one per processor.
    pub inter_op_threads: usize,
    /// How many threads one op may use; zero for one per processor.
    pub intra_op_threads: usize,
    /// Calls to another task fail after this time without a sign of life from it.
    pub patience: Duration,
    /// The folder of the journal that makes the variables of this task durable: it has them again after a restart.
    pub journal: Option<PathBuf>,
    /// How gradients of synchronous training are counted by accumulators on this task.
    pub sync_policy: SyncPolicy,
    /// The configuration of sessions where they do not set their own: device filters, step timeout, soft placement.
    pub default_session_config: SessionConfig,
    /// Values for the kernels of this task, such as file systems: `Extensions::new().with(file_systems)`.
    pub extensions: Extensions,
}

/// A running server: one task of a cluster. Dropping it stops it, which blocks until its threads have ended; steps of its
/// clients then fail with `Unavailable`. It may be started, used and dropped inside async programs.
pub struct Server {
    master: Arc<Master>,
    serving: Option<Serving>,
    target: String,
    runtime: OwnedRuntime,
}

/// How many threads move messages; steps run on other threads. More are not faster, as each is one more thread to wake in
/// the middle of a step: on two processors, a step over two tasks takes a sixth longer with two threads than with one.
fn io_threads(processors: usize) -> usize {
    (processors / 2).clamp(1, 4)
}

impl ServerOptions {
    /// A task of a cluster, with one device and as many threads as there are processors. `cluster.task(None, None)` is the
    /// task of a cluster that has only one.
    pub fn new(cluster: ClusterSpec, task: Task) -> ServerOptions {
        ServerOptions {
            cluster,
            task,
            bind: None,
            devices: 1,
            inter_op_threads: 0,
            intra_op_threads: 0,
            patience: grpc::PATIENCE,
            sync_policy: SyncPolicy::default(),
            journal: None,
            default_session_config: SessionConfig::default(),
            extensions: Extensions::default(),
        }
    }
}

impl From<ServerDef> for ServerOptions {
    /// The options in TensorFlow's `ServerDef`. The session configuration in it also sets the devices and threads.
    fn from(def: ServerDef) -> ServerOptions {
        let SessionConfig { inter_op_threads, intra_op_threads, .. } = def.default_session_config;
        ServerOptions {
            devices: def.default_session_config.cpu_devices(),
            inter_op_threads,
            intra_op_threads,
            default_session_config: def.default_session_config,
            ..ServerOptions::new(def.cluster, def.task)
        }
    }
}

impl Server {
    /// Starts a task, which listens when this returns. Port 0 in its address stands for any free port.
    pub fn start(options: ServerOptions) -> Result<Server> {
        let address = options.cluster.address(&options.task).ok_or_else(|| no_task(&options))?;
        let place = match (&options.bind, address.rsplit_once(':')) {
            (Some(host), Some((_, port))) if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
            (Some(host), Some((_, port))) => format!("{host}:{port}"),
            _ => address.to_string(),
        };
        let bad = |error: std::io::Error| unavailable!("Cannot listen on {place}: {error}");
        let listener = TcpListener::bind(&place).map_err(bad)?;
        Server::start_on(options, listener)
    }

    /// Starts a task on a socket that listens already, at the address that the cluster has for it.
    pub fn start_on(options: ServerOptions, listener: TcpListener) -> Result<Server> {
        let address = options.cluster.address(&options.task).ok_or_else(|| no_task(&options))?.to_string();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = OwnedRuntime::start(io_threads(processors), "flowgrid-io")?;
        let or_all = |count: usize| if count == 0 { processors } else { count };
        let worker = Worker::new(WorkerOptions {
            task: options.task.clone(),
            cluster: options.cluster,
            registry: data::registry(),
            devices: options.devices,
            inter_op_threads: or_all(options.inter_op_threads),
            intra_op_threads: or_all(options.intra_op_threads),
            transport: Arc::new(GrpcTransport::new(runtime.handle().clone()).with_patience(options.patience)),
            runtime: Arc::new(TokioRuntime::new(runtime.handle().clone())),
            differentiate: Some(crate::differentiate()),
            sync_policy: options.sync_policy,
            extensions: options.default_session_config.with_device_counts(options.extensions),
        });
        if let Some(folder) = &options.journal {
            restore_variables(&worker, folder)?;
        }
        let master = Master::with_default(worker, options.default_session_config);
        let serving = runtime.block_on(grpc::serve(master.clone(), listener, options.patience))?;
        let host = address.rsplit_once(':').map_or("localhost", |(host, _)| host);
        let bound = format!("{host}:{}", serving.address.port());
        master.worker().set_own_address(&bound);
        Ok(Server { master, serving: Some(serving), target: format!("grpc://{bound}"), runtime })
    }

    /// The target of clients: `grpc://host:port`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Its counters, which can be read even after it has stopped.
    pub fn counters(&self) -> ServerCounters {
        ServerCounters::new(self.master.worker())
    }

    /// A session on this server. It calls the master of the server directly: there is no connection, and tensors are
    /// shared instead of copied.
    ///
    /// ```no_run
    /// # use flowgrid_session::{ClusterSpec, Server, ServerOptions};
    /// # fn main() -> Result<(), status::Error> {
    /// let cluster = ClusterSpec::parse("worker=127.0.0.1:0")?;
    /// let task = cluster.task(None, None)?;
    /// let server = Server::start(ServerOptions::new(cluster, task))?;
    /// let graph = graph::Graph::with_ops(data::registry());
    /// let session = server.session(&graph);
    /// # Ok(())
    /// # }
    /// ```
    pub fn session(&self, graph: &Graph) -> Session {
        self.session_with_config(graph, SessionConfig::default())
    }

    /// A session on this server with a configuration, without a connection.
    pub fn session_with_config(&self, graph: &Graph, mut config: SessionConfig) -> Session {
        if config.target.is_empty() {
            config.target = self.target.clone();
        }
        let master = ServerMaster { master: self.master.clone(), runtime: self.runtime.handle().clone() };
        Session::over(Connection { master: Arc::new(master), runtime: None }, graph, config)
    }

    /// Waits until `end` is over, then stops: steps of its clients end with `Unavailable`, and when this returns nothing of
    /// the server is left. A program that is only a server waits for a signal:
    /// `server.join(async { drop(tokio::signal::ctrl_c().await) })`.
    pub fn join(mut self, end: impl Future<Output = ()>) {
        let serving = self.serving.take();
        self.runtime.block_on(async {
            end.await;
            self.master.shut_down().await;
            if let Some(serving) = serving {
                // Clients keep idle connections open, so this may not end by itself.
                let _ = tokio::time::timeout(std::time::Duration::from_secs(2), serving.stop()).await;
            }
        });
    }
}

/// Makes the variables of a task durable, with one journal for each device, and restores those in the journals.
fn restore_variables(worker: &Worker, folder: &Path) -> Result<()> {
    for (device, resources) in worker.device_labels().zip(worker.resources()) {
        let folder = folder.join(device);
        let variables = DurableVariables::open(&folder)?;
        let (count, bytes) = variables.unclaimed();
        tracing::info!("journal {}: {count} variables, {bytes} bytes", folder.display());
        Arc::new(variables).attach(resources)?;
    }
    Ok(())
}

fn no_task(options: &ServerOptions) -> status::Error {
    let known: Vec<String> = options.cluster.tasks().map(|task| task.to_string()).collect();
    invalid!("{} is not in the cluster; its tasks are {}", options.task, known.join(", "))
}
