//! The master that a target names: of this process, or of a server.

use crate::differentiate;
use crate::runtime::OwnedRuntime;
use cluster::{
    ClusterSpec, LocalRuntime, Master, MasterClient, NoTransport, SessionConfig, Task, Worker, WorkerOptions,
    host_and_port,
};
use grpc::{GrpcMaster, GrpcMasterOptions};
use status::{Result, invalid, not_found};
use std::sync::Arc;

/// A master, and the threads through which it is reached, if it is not in this process.
pub(crate) struct Connection {
    pub master: Arc<dyn MasterClient>,
    pub runtime: Option<OwnedRuntime>,
}

impl Connection {
    /// Connects to the master that a target names.
    pub fn to(target: &str, config: &SessionConfig) -> Result<Connection> {
        match target.split_once("://") {
            _ if target.is_empty() => Ok(Connection::local(config)),
            Some(("grpc", address)) => Connection::remote(address, config),
            None if target.contains(':') => Connection::remote(target, config),
            _ => Err(not_found!(
                "No session factory registered for the given session options: {{target: \"{target}\"}}; \
                 a target is grpc://host:port, host:port, or empty for a session in this process"
            )),
        }
    }

    /// A new cluster of one task, which ends with the session.
    pub fn local(config: &SessionConfig) -> Connection {
        let task = Task { job: "localhost".to_string(), index: 0 };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let or_all = |count: usize| if count == 0 { processors } else { count };
        let worker = Worker::new(WorkerOptions {
            cluster: ClusterSpec::new().with_task(&task.job, 0, "localhost:0").unwrap_or_default(),
            task,
            registry: data::registry(),
            devices: config.cpu_devices(),
            inter_op_threads: or_all(config.inter_op_threads),
            intra_op_threads: or_all(config.intra_op_threads),
            transport: Arc::new(NoTransport),
            runtime: Arc::new(LocalRuntime::default()),
            differentiate: Some(differentiate()),
            sync_policy: Default::default(),
            extensions: config.with_device_counts(config.extensions.clone()),
        });
        Connection { master: Master::new(worker), runtime: None }
    }

    fn remote(address: &str, config: &SessionConfig) -> Result<Connection> {
        if host_and_port(address).is_none() {
            return Err(invalid!(
                "Could not interpret \"{address}\" as a host-port pair. Expected grpc://host:port with a number for the \
                 port, such as grpc://127.0.0.1:2222 or grpc://[::1]:2222"
            ));
        }
        let defaults = GrpcMasterOptions::default();
        let options = GrpcMasterOptions {
            patience: config.peer_timeout.unwrap_or(defaults.patience),
            connect_timeout: config.connect_timeout.or(config.step_timeout).unwrap_or(defaults.connect_timeout),
            step_timeout: config.step_timeout,
        };
        let runtime = OwnedRuntime::start(1, "flowgrid-session")?;
        let master = Arc::new(GrpcMaster::new(address, runtime.handle().clone(), options)?);
        Ok(Connection { master, runtime: Some(runtime) })
    }
}
