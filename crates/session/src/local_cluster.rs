//! A whole cluster in this process, for examples and tests.

use crate::{Server, ServerOptions, Session, SessionConfig};
use cluster::{ClusterSpec, Task};
use graph::Graph;
use status::{Result, not_found, unavailable};
use std::net::TcpListener;

/// Servers of one process, on free ports of the loopback interface. Dropping it stops all of them.
pub struct LocalCluster {
    cluster: ClusterSpec,
    servers: Vec<(Task, Server)>,
}

impl LocalCluster {
    /// Starts this many tasks of each job: `LocalCluster::start(&[("ps", 2), ("worker", 3)])`.
    pub fn start(jobs: &[(&str, usize)]) -> Result<LocalCluster> {
        LocalCluster::start_with(jobs, |options| options)
    }

    /// Starts the tasks with options that `change` makes of the default ones.
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

    /// The tasks and their addresses.
    pub fn cluster(&self) -> &ClusterSpec {
        &self.cluster
    }

    /// The targets of a job's tasks, in order.
    pub fn targets(&self, job: &str) -> Vec<String> {
        let of_job = self.servers.iter().filter(|(task, _)| task.job == job);
        of_job.map(|(_, server)| server.target().to_string()).collect()
    }

    /// Calls a function for each task of a job, all at the same time, with its index and target; gives the results in order.
    ///
    /// # Panics
    ///
    /// Panics if the function does.
    pub fn on_each_task<T: Send>(&self, job: &str, work: impl Fn(usize, &str) -> Result<T> + Sync) -> Result<Vec<T>> {
        let (targets, work) = (self.targets(job), &work);
        std::thread::scope(|scope| {
            let started = targets.iter().enumerate().map(|(task, target)| scope.spawn(move || work(task, target)));
            let started: Vec<_> = started.collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<T>>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            started.into_iter().map(join).collect()
        })
    }

    /// The server of a task, if it has not been stopped.
    pub fn server(&self, job: &str, index: u32) -> Option<&Server> {
        let mut servers = self.servers.iter();
        servers.find(|(task, _)| task.job == job && task.index == index).map(|(_, server)| server)
    }

    /// A session whose master is this task, without a connection; an error if there is no such task.
    pub fn session(&self, job: &str, index: u32, graph: &Graph) -> Result<Session> {
        self.session_with_config(job, index, graph, SessionConfig::default())
    }

    /// A session with a configuration whose master is this task, without a connection; an error if there is no such task.
    pub fn session_with_config(&self, job: &str, index: u32, graph: &Graph, config: SessionConfig) -> Result<Session> {
        let server = self.server(job, index);
        let server = server.ok_or_else(|| not_found!("The cluster has no running task {index} in job '{job}'"))?;
        Ok(server.session_with_config(graph, config))
    }

    /// Stops one task at once, as when its machine fails.
    pub fn stop(&mut self, job: &str, index: u32) {
        self.servers.retain(|(task, _)| !(task.job == job && task.index == index));
    }
}
