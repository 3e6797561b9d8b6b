//! The cluster and the task of this server: from flags, from a ServerDef, or from TF_CONFIG.

use crate::numbers::whole;
use anyhow::{Context, Result, bail};
use clap::Args;
use io::text::text_to_binary;
use session::{ClusterSpec, ServerDef, ServerOptions, Task, TfConfig, cluster_from_text};
use std::path::{Path, PathBuf};

/// The cluster and this task's place in it.
#[derive(Args, Clone, Debug)]
pub struct ClusterArgs {
    /// All tasks of the cluster. Jobs are separated by `;`, addresses by `,`:
    /// `ps=10.0.0.1:2222;worker=10.0.0.2:2222,10.0.0.3:2222`.
    #[arg(long, value_name = "SPEC", conflicts_with = "cluster_json")]
    cluster: Option<String>,

    /// All tasks of the cluster as JSON: `{"ps": ["10.0.0.1:2222"], "worker": {"0": "10.0.0.2:2222"}}`.
    #[arg(long, value_name = "JSON")]
    cluster_json: Option<String>,

    /// Addresses of the job `ps`, separated by `,`; the flag of TensorFlow's scripts.
    #[arg(long = "ps_hosts", alias = "ps-hosts", value_name = "HOSTS")]
    ps_hosts: Option<String>,

    /// Addresses of the job `worker`, separated by `,`; the flag of TensorFlow's scripts.
    #[arg(long = "worker_hosts", alias = "worker-hosts", value_name = "HOSTS")]
    worker_hosts: Option<String>,

    /// A file with a ServerDef message, as text if its name ends in .pbtxt: the cluster, the job and task of this
    /// server, and the default configuration of sessions. `--job` and `--task` override those of the file.
    #[arg(long, alias = "server_def", value_name = "FILE",
          conflicts_with_all = ["cluster", "cluster_json", "ps_hosts", "worker_hosts"])]
    server_def: Option<PathBuf>,

    /// The job of this task. Optional if the cluster has only one job.
    #[arg(long, alias = "job_name", alias = "job-name", value_name = "NAME")]
    job: Option<String>,

    /// The index of this task in its job, from 0. Optional if the job has only one task.
    #[arg(long, alias = "task_index", alias = "task-index", value_name = "N", value_parser = whole::<u32>)]
    task: Option<u32>,
}

impl ClusterArgs {
    /// The options of a server for this task, or an error that says what is missing. TF_CONFIG is read only if no flag
    /// names a cluster.
    pub fn options(&self, tf_config: Option<&str>) -> Result<ServerOptions> {
        if let Some(file) = &self.server_def {
            let message = read_server_def(file)?;
            return Ok(ServerDef::read(&message, self.job.as_deref(), self.task)?.into());
        }
        let (cluster, task) = self.resolve(tf_config)?;
        Ok(ServerOptions::new(cluster, task))
    }

    fn resolve(&self, tf_config: Option<&str>) -> Result<(ClusterSpec, Task)> {
        let config = match self.names_a_cluster() {
            true => TfConfig::default(), // TF_CONFIG describes a task of another cluster
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
                 --worker_hosts, --server-def, or the environment variable TF_CONFIG"
            ),
        }
    }
}

/// The message in a file, binary or as text.
fn read_server_def(file: &Path) -> Result<Vec<u8>> {
    let content = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    if file.extension().is_none_or(|extension| extension != "pbtxt") {
        return Ok(content);
    }
    let text = String::from_utf8(content).with_context(|| format!("{} is not UTF-8 text", file.display()))?;
    Ok(text_to_binary("tensorflow.ServerDef", &text)?.to_vec())
}

#[cfg(test)]
mod tests;
