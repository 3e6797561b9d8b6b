//! A whole cluster in this process, for tests and first steps.

use crate::{Server, ServerOptions};
use cluster::{ClusterSpec, Task};
use status::{Result, unavailable};
use std::net::TcpListener;

/// Servers of one process, on free ports of the loopback interface. Dropping it stops all of them.
pub struct LocalCluster {
    cluster: ClusterSpec,
    servers: Vec<(Task, Server)>,
}

impl LocalCluster {
    /// Starts so many tasks of each job: `LocalCluster::start(&[("ps", 2), ("worker", 3)])`.
    pub fn start(jobs: &[(&str, usize)]) -> Result<LocalCluster> {
        LocalCluster::start_with(jobs, |options| options)
    }

    /// As `start`, with other options for each of the tasks than those it would have.
    pub fn start_with(jobs: &[(&str, usize)], change: impl Fn(ServerOptions) -> ServerOptions) -> Result<LocalCluster> {
        let bad = |error: std::io::Error| unavailable!("No free port on 127.0.0.1: {error}");
        let (mut cluster, mut listeners) = (ClusterSpec::new(), Vec::new());
        for &(job, count) in jobs {
            for index in 0..count as u32 {
                let listener = TcpListener::bind("127.0.0.1:0").map_err(bad)?;
                cluster = cluster.with_task(job, index, &listener.local_addr().map_err(bad)?.to_string())?;
                listeners.push((Task { job: job.to_string(), index }, listener));
            }
        }
        let start = |(task, listener): (Task, TcpListener)| {
            let options = change(ServerOptions::new(cluster.clone(), task.clone()));
            let server = Server::start_on(options, listener)?;
            Ok((task, server))
        };
        let servers = listeners.into_iter().map(start).collect::<Result<_>>()?;
        Ok(LocalCluster { cluster, servers })
    }

    /// Which tasks there are, and where.
    pub fn cluster(&self) -> &ClusterSpec {
        &self.cluster
    }

    /// The targets of a job's tasks, in order.
    pub fn targets(&self, job: &str) -> Vec<String> {
        let of_job = self.servers.iter().filter(|(task, _)| task.job == job);
        of_job.map(|(_, server)| server.target().to_string()).collect()
    }

    /// Stops one task, as if its machine were taken away.
    pub fn stop(&mut self, job: &str, index: u32) {
        self.servers.retain(|(task, _)| !(task.job == job && task.index == index));
    }
}
