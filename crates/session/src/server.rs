//! A task that serves clients and other tasks.

use crate::ServerCounters;
use cluster::{ClusterSpec, Master, SessionConfig, Task, Worker, WorkerOptions};
use durable::DurableVariables;
use grpc::{GrpcPeers, ServerDef, Serving};
use membership::SyncPolicy;
use op::Extensions;
use status::{Result, internal, invalid, unavailable};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// All tasks there are.
    pub cluster: ClusterSpec,
    /// Which of them this is.
    pub task: Task,
    /// The host of the interface it listens on, as `0.0.0.0` for all; that of its own address if none is given.
    pub bind: Option<String>,
    /// How many CPU devices it has.
    pub devices: usize,
    /// Threads that run heavy ops; zero means one for each processor.
    pub inter_op_threads: usize,
    /// Threads over which one op splits its loops; zero means one for each processor.
    pub intra_op_threads: usize,
    /// After this long without a sign of life another task is taken for dead.
    pub patience: Duration,
    /// Where the variables of this task are kept, so that it finds them when it is started again.
    pub journal: Option<PathBuf>,
    /// How gradients of synchronous training are counted by accumulators on this task.
    pub sync_policy: SyncPolicy,
    /// What sessions get that do not ask for something else: filters, a limit of their steps, soft placement.
    pub default_session_config: SessionConfig,
    /// Values for the kernels of this task, such as file systems: `Extensions::new().with(file_systems)`.
    pub extensions: Extensions,
}

/// A running server: one task of a cluster. Dropping it stops it.
pub struct Server {
    master: Arc<Master>,
    serving: Option<Serving>,
    target: String,
    runtime: Runtime,
}

/// Threads that move messages; steps run on threads of their own. Each more is a thread that others wake in the middle of
/// a step: on two processors one thread makes a step over two tasks a sixth faster than two.
fn io_threads(processors: usize) -> usize {
    (processors / 2).clamp(1, 4)
}

impl ServerOptions {
    /// A task of a cluster, with one device and as many threads as there are processors. Where the cluster has only one,
    /// `cluster.task(None, None)` is it.
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
    /// What TensorFlow's description of a server says; its session configuration is that of its devices and threads too.
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
    /// Starts a task; it listens when this returns. Port 0 in its address means any free port.
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

    /// Starts a task on a socket that listens already, at the address the cluster has for it.
    pub fn start_on(options: ServerOptions, listener: TcpListener) -> Result<Server> {
        let address = options.cluster.address(&options.task).ok_or_else(|| no_task(&options))?.to_string();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(io_threads(processors))
            .thread_name("flowgrid-io")
            .enable_all()
            .build()
            .map_err(|error| internal!("Cannot start threads: {error}"))?;
        let or_all = |count: usize| if count == 0 { processors } else { count };
        let worker = Worker::new(WorkerOptions {
            task: options.task.clone(),
            cluster: options.cluster,
            registry: ops::registry(),
            devices: options.devices,
            inter_op_threads: or_all(options.inter_op_threads),
            intra_op_threads: or_all(options.intra_op_threads),
            peers: Arc::new(GrpcPeers::new(runtime.handle().clone()).with_patience(options.patience)),
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

    /// Where clients find it: `grpc://host:port`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// What it counts.
    pub fn counters(&self) -> ServerCounters {
        ServerCounters::new(self.master.worker())
    }

    /// Waits until `end` is over, then stops: steps of its clients end with `Unavailable`, and when this returns nothing of
    /// the server is left. A program that is a server and nothing else waits for a signal,
    /// `server.join(async { drop(tokio::signal::ctrl_c().await) })`.
    pub fn join(mut self, end: impl Future<Output = ()>) {
        let serving = self.serving.take();
        self.runtime.block_on(async {
            end.await;
            self.master.shut_down().await;
            if let Some(serving) = serving {
                // Clients keep their connections open: those that are idle need not be waited for.
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
