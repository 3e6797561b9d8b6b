//! A server as TensorFlow describes one: its cluster, its place in it, and what sessions get there.

use crate::wire::{cluster_spec, session_config, task_number};
use cluster::{ClusterSpec, SessionConfig, Task, host_and_port};
use prost::Message;
use proto::tensorflow as pb;
use status::{Result, invalid, not_found};

/// The one protocol that is spoken.
const PROTOCOL: &str = "grpc";

/// What a `ServerDef` message says.
#[derive(Clone, Debug)]
pub struct ServerDef {
    /// All tasks there are.
    pub cluster: ClusterSpec,
    /// Which of them it is.
    pub task: Task,
    /// What sessions get that do not ask for something else.
    pub default_session_config: SessionConfig,
}

impl ServerDef {
    /// Reads the bytes of a `ServerDef` message. A job and a number that are given count instead of its own.
    pub fn read(message: &[u8], job: Option<&str>, index: Option<u32>) -> Result<ServerDef> {
        let bad = |error| invalid!("These {} bytes are no ServerDef: {error}", message.len());
        let def = pb::ServerDef::decode(message).map_err(bad)?;
        if ![PROTOCOL, ""].contains(&&*def.protocol) {
            return Err(not_found!(
                "No server factory registered for the given ServerDef: protocol \"{}\"; the one that is spoken here is \
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
            let port = u16::try_from(def.port).map_err(|_| invalid!("ServerDef.port {} is no port", def.port))?;
            let host = cluster.address(&task).and_then(host_and_port).map_or("localhost", |(host, _)| host);
            let address = format!("{host}:{port}");
            cluster.set_address(&task, &address);
        }
        let default_session_config = session_config(def.default_session_config.unwrap_or_default(), String::new())?;
        Ok(ServerDef { cluster, task, default_session_config })
    }
}
