//! Which tasks a cluster has, and where they listen.

use graph::DeviceSpec;
use status::{Result, invalid};
use std::collections::BTreeMap;
use std::fmt;

/// Jobs, their tasks, and the address of each; task numbers need not be dense.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSpec {
    jobs: BTreeMap<String, BTreeMap<u32, String>>,
}

/// Numbers left out one after the other that are still written as empty places.
const MAX_GAP: u32 = 1000;

/// A task of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Task {
    /// Its job.
    pub job: String,
    /// Its number there.
    pub index: u32,
}

impl ClusterSpec {
    /// No jobs yet.
    pub fn new() -> ClusterSpec {
        ClusterSpec::default()
    }

    /// Reads `ps=host:port,host:port;worker=host:port`; an empty address leaves that number out.
    pub fn parse(text: &str) -> Result<ClusterSpec> {
        let mut spec = ClusterSpec::new();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (job, hosts) = part
                .split_once('=')
                .ok_or_else(|| invalid!("Cluster '{text}': '{part}' is not of the form job=host:port,host:port"))?;
            for (index, address) in hosts.split(',').map(str::trim).enumerate() {
                if !address.is_empty() {
                    spec = spec.with_task(job.trim(), index as u32, address)?;
                }
            }
        }
        Ok(spec)
    }

    /// The same cluster with another task.
    pub fn with_task(mut self, job: &str, index: u32, address: &str) -> Result<ClusterSpec> {
        let valid = DeviceSpec::parse(&format!("/job:{job}")).is_ok_and(|spec| spec.job.is_some());
        if !valid {
            return Err(invalid!("'{job}' is no job name: a letter, then letters, digits and underscores"));
        }
        let has_port =
            address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if !has_port {
            return Err(invalid!("'{address}' of /job:{job}/task:{index} is no address: expected host:port"));
        }
        self.jobs.entry(job.to_string()).or_default().insert(index, address.to_string());
        Ok(self)
    }

    /// The names of all jobs, in order.
    pub fn jobs(&self) -> impl Iterator<Item = &str> {
        self.jobs.keys().map(String::as_str)
    }

    /// The tasks of a job with their addresses, in order.
    pub fn job(&self, job: &str) -> Option<&BTreeMap<u32, String>> {
        self.jobs.get(job)
    }

    /// Where a task listens.
    pub fn address(&self, task: &Task) -> Option<&str> {
        self.jobs.get(&task.job)?.get(&task.index).map(String::as_str)
    }

    /// All tasks, in order.
    pub fn tasks(&self) -> impl Iterator<Item = Task> {
        let tasks = self.jobs.iter().flat_map(|(job, tasks)| tasks.keys().map(move |&index| (job, index)));
        tasks.map(|(job, index)| Task { job: job.clone(), index })
    }

    /// Changes the address of a task that is there: a server that asked for any free port got one.
    pub fn set_address(&mut self, task: &Task, address: &str) {
        if let Some(known) = self.jobs.get_mut(&task.job).and_then(|tasks| tasks.get_mut(&task.index)) {
            *known = address.to_string();
        }
    }
}

impl fmt::Display for ClusterSpec {
    /// The form that `parse` reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (job, tasks)) in self.jobs.iter().enumerate() {
            write!(f, "{}{job}=", if place > 0 { ";" } else { "" })?;
            let mut next = 0;
            for (&index, address) in tasks {
                let commas = (index - next).min(MAX_GAP) as usize;
                write!(f, "{}{address}", ",".repeat(commas))?;
                next = index;
            }
        }
        Ok(())
    }
}

impl Task {
    /// The task that a device belongs to.
    pub fn of_device(spec: &DeviceSpec) -> Option<Task> {
        Some(Task { job: spec.job.clone()?, index: spec.task? })
    }

    /// The task's name as the beginning of a device name.
    pub fn spec(&self) -> DeviceSpec {
        DeviceSpec { job: Some(self.job.clone()), replica: Some(0), task: Some(self.index), ..DeviceSpec::default() }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/job:{}/replica:0/task:{}", self.job, self.index)
    }
}
