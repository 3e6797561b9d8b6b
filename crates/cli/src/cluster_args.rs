//! Which cluster, and which task of it: from flags, or from TF_CONFIG.

use anyhow::{Result, bail};
use clap::Args;
use session::{ClusterSpec, Task, TfConfig, cluster_from_text};

/// The cluster and this task's place in it.
#[derive(Args, Clone, Debug)]
pub struct ClusterArgs {
    /// All tasks: jobs separated by `;`, addresses by `,`, as in
    /// `ps=10.0.0.1:2222;worker=10.0.0.2:2222,10.0.0.3:2222`.
    #[arg(long, value_name = "SPEC", conflicts_with = "cluster_json")]
    cluster: Option<String>,

    /// The same as JSON: `{"ps": ["10.0.0.1:2222"], "worker": {"0": "10.0.0.2:2222"}}`.
    #[arg(long, value_name = "JSON")]
    cluster_json: Option<String>,

    /// Addresses of the ps job, as TensorFlow's scripts spell it.
    #[arg(long = "ps_hosts", alias = "ps-hosts", value_name = "HOSTS")]
    ps_hosts: Option<String>,

    /// Addresses of the worker job, as TensorFlow's scripts spell it.
    #[arg(long = "worker_hosts", alias = "worker-hosts", value_name = "HOSTS")]
    worker_hosts: Option<String>,

    /// The job this task belongs to; may be left out if there is only one.
    #[arg(long, alias = "job_name", alias = "job-name", value_name = "NAME")]
    job: Option<String>,

    /// This task's number in its job; may be left out if the job has only one task.
    #[arg(long, alias = "task_index", alias = "task-index", value_name = "N")]
    task: Option<u32>,
}

impl ClusterArgs {
    /// The cluster and this task, or an error that says what is missing. TF_CONFIG counts if no flag names a cluster.
    pub fn resolve(&self, tf_config: Option<&str>) -> Result<(ClusterSpec, Task)> {
        let config = match self.names_a_cluster() {
            true => TfConfig::default(), // a place in another cluster
            false => TfConfig::parse(tf_config.unwrap_or_default())?,
        };
        let cluster = self.cluster(&config)?;
        let task = cluster.task(self.job.as_deref().or(config.job.as_deref()), self.task.or(config.index))?;
        Ok((cluster, task))
    }

    fn names_a_cluster(&self) -> bool {
        [&self.cluster, &self.cluster_json, &self.ps_hosts, &self.worker_hosts].iter().any(|flag| flag.is_some())
    }

    fn cluster(&self, config: &TfConfig) -> Result<ClusterSpec> {
        if let Some(text) = &self.cluster {
            return Ok(ClusterSpec::parse(text)?);
        }
        if let Some(text) = &self.cluster_json {
            return Ok(cluster_from_text(text)?);
        }
        if self.ps_hosts.is_some() || self.worker_hosts.is_some() {
            let job = |name: &str, hosts: &Option<String>| match hosts {
                Some(hosts) if !hosts.is_empty() => format!("{name}={hosts};"),
                _ => String::new(),
            };
            let text = job("ps", &self.ps_hosts) + &job("worker", &self.worker_hosts);
            return Ok(ClusterSpec::parse(&text)?);
        }
        match &config.cluster {
            Some(cluster) => Ok(cluster.clone()),
            None => bail!(
                "no cluster given: use --cluster 'worker=127.0.0.1:2222', --cluster-json, --ps_hosts and \
                 --worker_hosts, or the environment variable TF_CONFIG"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
