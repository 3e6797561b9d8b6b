//! Reads TensorFlow's description of a server: its cluster, its task, and the default configuration of sessions.

use crate::wire::{cluster_spec, session_config, task_number};
use cluster::{ClusterSpec, SessionConfig, Task, host_and_port};
use prost::Message;
use proto::tensorflow as pb;
use status::{Result, invalid, not_found};

/// The only supported protocol.
const PROTOCOL: &str = "grpc";

/// The contents of a `ServerDef` message.
#[derive(Clone, Debug)]
pub struct ServerDef {
    /// The tasks of the cluster.
    pub cluster: ClusterSpec,
    /// The task of the server.
    pub task: Task,
    /// The configuration of sessions that specify none.
    pub default_session_config: SessionConfig,
}

impl ServerDef {
    /// Decodes a `ServerDef` message. `job` and `index` replace those of the message.
    pub fn read(message: &[u8], job: Option<&str>, index: Option<u32>) -> Result<ServerDef> {
        let bad = |error| invalid!("{} bytes are not a ServerDef: {error}", message.len());
        let def = pb::ServerDef::decode(message).map_err(bad)?;
        if ![PROTOCOL, ""].contains(&&*def.protocol) {
            return Err(not_found!(
                "No server factory registered for the given ServerDef: protocol \"{}\"; the only supported one is \
                 \"{PROTOCOL}\"",
                def.protocol
            ));
        }
        let mut cluster = cluster_spec(def.cluster.unwrap_or_default())?;
        let own = Some(&*def.job_name).filter(|job| !job.is_empty());
        let index = index.map_or_else(|| task_number(def.task_index), Ok)?;
        let task = cluster.task(job.or(own), Some(index))?;
        let describes_it = own.is_none_or(|own| own == task.job) && i64::from(def.task_index) == i64::from(task.index);
        if def.port != 0 && describes_it {
            let port = u16::try_from(def.port).map_err(|_| invalid!("ServerDef.port {} is not a port", def.port))?;
            let host = cluster.address(&task).and_then(host_and_port).map_or("localhost", |(host, _)| host);
            let address = format!("{host}:{port}");
            cluster.set_address(&task, &address);
        }
        let default_session_config = session_config(def.default_session_config.unwrap_or_default(), String::new())?;
        Ok(ServerDef { cluster, task, default_session_config })
    }
}
