//! The tasks of a cluster and their addresses.

use crate::host_and_port;
use graph::DeviceSpec;
use status::{Error, Result, invalid};
use std::collections::BTreeMap;
use std::fmt;

/// The jobs of a cluster, with the address of each of their tasks. Task numbers may have gaps, and a job may be empty.
///
/// ```
/// # use flowgrid_cluster::ClusterSpec;
/// let cluster = ClusterSpec::parse("ps=10.0.0.1:2222;worker=10.0.0.2:2222,10.0.0.3:2222")?;
/// assert_eq!(cluster.num_tasks("worker")?, 2);
/// # Ok::<(), status::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSpec {
    jobs: BTreeMap<String, BTreeMap<u32, String>>,
}

/// The addresses of a job, in the form of TensorFlow's `as_dict`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses<'a> {
    /// The addresses of tasks 0, 1, 2 and so on; at least one.
    List(Vec<&'a str>),
    /// The addresses by task number: some numbers are missing, or the job is empty.
    Map(BTreeMap<u32, &'a str>),
}

/// A task of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Task {
    /// The job.
    pub job: String,
    /// The number of the task in its job.
    pub index: u32,
}

impl ClusterSpec {
    /// A cluster without jobs.
    pub fn new() -> ClusterSpec {
        ClusterSpec::default()
    }

    /// Parses `ps=host:port,host:port;worker=host:port`. Tasks are numbered in order. An empty address skips a number, and
    /// an address may begin with its number, from which the next ones continue, as in `worker=5:host:port,host:port`.
    pub fn parse(text: &str) -> Result<ClusterSpec> {
        let mut spec = ClusterSpec::new();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (job, hosts) = part
                .split_once('=')
                .ok_or_else(|| invalid!("Cluster '{text}': '{part}' is not of the form job=host:port,host:port"))?;
            spec = spec.with_job(job.trim())?.with_hosts(job.trim(), hosts)?;
        }
        Ok(spec)
    }

    fn with_hosts(mut self, job: &str, hosts: &str) -> Result<ClusterSpec> {
        let mut next: u32 = 0;
        for host in hosts.split(',').map(str::trim) {
            let (index, address) = numbered(host).unwrap_or((next, host));
            next = index.saturating_add(1);
            if address.is_empty() {
                continue;
            }
            if self.jobs.get(job).is_some_and(|tasks| tasks.contains_key(&index)) {
                return Err(invalid!("Job '{job}' has two addresses for task {index} in '{hosts}'; leave one out"));
            }
            self = self.with_task(job, index, address)?;
        }
        Ok(self)
    }

    /// Adds a job without tasks.
    pub fn with_job(mut self, job: &str) -> Result<ClusterSpec> {
        check_job_name(job)?;
        if self.jobs.insert(job.to_string(), BTreeMap::new()).is_some() {
            return Err(invalid!(
                "The cluster names job '{job}' twice; name it once with all its addresses: {job}=host:port,host:port"
            ));
        }
        Ok(self)
    }

    /// Adds a task; its job is added too if it is missing.
    pub fn with_task(mut self, job: &str, index: u32, address: &str) -> Result<ClusterSpec> {
        check_job_name(job)?;
        if host_and_port(address).is_none() {
            return Err(no_address(job, index, address));
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

    /// The number of tasks of a job; an error if there is no such job.
    pub fn num_tasks(&self, job: &str) -> Result<usize> {
        Ok(self.tasks_of(job)?.len())
    }

    /// The numbers of a job's tasks, in order; an error if there is no such job.
    pub fn task_indices(&self, job: &str) -> Result<Vec<u32>> {
        Ok(self.tasks_of(job)?.keys().copied().collect())
    }

    /// The address of a task; an error if there is no such job or task.
    pub fn task_address(&self, job: &str, index: u32) -> Result<&str> {
        let tasks = self.tasks_of(job)?;
        tasks.get(&index).map(String::as_str).ok_or_else(|| {
            let known = listed(tasks.keys());
            invalid!("No task with index {index} in job '{job}'; its tasks are: {known}")
        })
    }

    /// The addresses of a job by task number, with `None` for numbers that are missing; an error if there is no such job.
    pub fn job_tasks(&self, job: &str) -> Result<Vec<Option<&str>>> {
        let tasks = self.tasks_of(job)?;
        let end = tasks.keys().next_back().map_or(0, |&last| u64::from(last) + 1);
        Ok((0..end).map(|index| tasks.get(&(index as u32)).map(String::as_str)).collect())
    }

    /// All jobs with their addresses, in order.
    pub fn as_dict(&self) -> BTreeMap<&str, Addresses<'_>> {
        self.jobs.iter().map(|(job, tasks)| (job.as_str(), Addresses::of(tasks))).collect()
    }

    fn tasks_of(&self, job: &str) -> Result<&BTreeMap<u32, String>> {
        let known = || listed(self.jobs.keys());
        self.jobs.get(job).ok_or_else(|| invalid!("No such job in cluster: '{job}'; its jobs are: {}", known()))
    }

    /// The address of a task, if the cluster has it.
    pub fn address(&self, task: &Task) -> Option<&str> {
        self.jobs.get(&task.job)?.get(&task.index).map(String::as_str)
    }

    /// A task of the cluster. The job may be left out if there is only one, and so may the number of the task.
    pub fn task(&self, job: Option<&str>, index: Option<u32>) -> Result<Task> {
        let job = match job {
            Some(job) => job,
            None => only(self.jobs.keys(), "job")?,
        };
        let tasks = self.tasks_of(job)?;
        let index = match index {
            Some(index) => index,
            None => *only(tasks.keys(), "task")?,
        };
        self.task_address(job, index)?;
        Ok(Task { job: job.to_string(), index })
    }

    /// All tasks, in order.
    pub fn tasks(&self) -> impl Iterator<Item = Task> {
        let tasks = self.jobs.iter().flat_map(|(job, tasks)| tasks.keys().map(move |&index| (job, index)));
        tasks.map(|(job, index)| Task { job: job.clone(), index })
    }

    /// Changes the address of a task, when a server that asked for any free port has one.
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
            let mut next: u32 = 0;
            for (place, (&index, address)) in tasks.iter().enumerate() {
                let comma = if place > 0 { "," } else { "" };
                let number = if index == next { String::new() } else { format!("{index}:") };
                write!(f, "{comma}{number}{address}")?;
                next = index.saturating_add(1);
            }
        }
        Ok(())
    }
}

impl Addresses<'_> {
    fn of(tasks: &BTreeMap<u32, String>) -> Addresses<'_> {
        let dense = !tasks.is_empty() && tasks.keys().copied().eq(0..tasks.len() as u32);
        match dense {
            true => Addresses::List(tasks.values().map(String::as_str).collect()),
            false => Addresses::Map(tasks.iter().map(|(&index, address)| (index, address.as_str())).collect()),
        }
    }
}

/// Splits `5:host:port`. The host may be a number itself, so two colons are needed.
fn numbered(text: &str) -> Option<(u32, &str)> {
    let (index, address) = text.split_once(':').filter(|(_, address)| address.contains(':'))?;
    Some((index.parse().ok()?, address))
}

fn check_job_name(job: &str) -> Result<()> {
    let valid = DeviceSpec::parse(&format!("/job:{job}")).is_ok_and(|spec| spec.job.as_deref() == Some(job));
    match valid {
        true => Ok(()),
        false => Err(invalid!("'{job}' is not a job name; expected a letter, then letters, digits and underscores")),
    }
}

fn no_address(job: &str, index: u32, address: &str) -> Error {
    let hint = match address.split_once("://") {
        Some((scheme, rest)) => format!("; leave out {scheme}://, as in {rest}"),
        None if address.matches(':').count() > 1 => "; an IPv6 host is in brackets, as in [::1]:2222".to_string(),
        None => ", such as 127.0.0.1:2222".to_string(),
    };
    invalid!("'{address}' of /job:{job}/task:{index} is not an address; expected host:port{hint}")
}

/// The only item; an error if there are none or several.
fn only<T: fmt::Display>(mut items: impl ExactSizeIterator<Item = T> + Clone, what: &str) -> Result<T> {
    let all = listed(items.clone());
    match (items.next(), items.next()) {
        (Some(item), None) => Ok(item),
        (None, _) => Err(invalid!("The cluster has no {what}")),
        _ => Err(invalid!("The cluster has more than one {what}; name one of {all}")),
    }
}

fn listed(items: impl ExactSizeIterator<Item = impl fmt::Display>) -> String {
    if items.len() == 0 {
        return "none".to_string();
    }
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

impl Task {
    /// The task of a device.
    pub fn of_device(spec: &DeviceSpec) -> Option<Task> {
        Some(Task { job: spec.job.clone()?, index: spec.task? })
    }

    /// The part of a device name that names this task.
    pub fn spec(&self) -> DeviceSpec {
        DeviceSpec { job: Some(self.job.clone()), replica: Some(0), task: Some(self.index), ..DeviceSpec::default() }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/job:{}/replica:0/task:{}", self.job, self.index)
    }
}
