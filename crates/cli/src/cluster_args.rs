//! Which cluster, and which task of it: from flags, from a ServerDef, or from TF_CONFIG.

use anyhow::{Context, Result, bail};
use clap::Args;
use io::text::text_to_binary;
use session::{ClusterSpec, ServerDef, ServerOptions, Task, TfConfig, cluster_from_text};
use std::path::{Path, PathBuf};

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

    /// A file with TensorFlow's description of a server, a ServerDef message (as text, if its name ends in .pbtxt): the
    /// cluster, this task's place in it, and what sessions get here. `--job` and `--task` count instead of its own.
    #[arg(long, alias = "server_def", value_name = "FILE",
          conflicts_with_all = ["cluster", "cluster_json", "ps_hosts", "worker_hosts"])]
    server_def: Option<PathBuf>,

    /// The job this task belongs to; may be left out if there is only one.
    #[arg(long, alias = "job_name", alias = "job-name", value_name = "NAME")]
    job: Option<String>,

    /// This task's number in its job; may be left out if the job has only one task.
    #[arg(long, alias = "task_index", alias = "task-index", value_name = "N")]
    task: Option<u32>,
}

impl ClusterArgs {
    /// What a server of this task begins with, or an error that says what is missing. TF_CONFIG counts if no flag names a
    /// cluster.
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
                 --worker_hosts, --server-def, or the environment variable TF_CONFIG"
            ),
        }
    }
}

/// The message in a file, which may be text.
fn read_server_def(file: &Path) -> Result<Vec<u8>> {
    let content = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    if file.extension().is_none_or(|extension| extension != "pbtxt") {
        return Ok(content);
    }
    let text = String::from_utf8(content).with_context(|| format!("{} is no text", file.display()))?;
    Ok(text_to_binary("tensorflow.ServerDef", &text)?.to_vec())
}

#[cfg(test)]
mod tests;
