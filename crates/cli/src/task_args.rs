//! Flags that every task of a cluster understands, whether it is started alone or with all the others.

use flowgrid::prelude::Every;
use session::{SyncPolicy, Task};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a task keeps, writes and counts.
#[derive(clap::Args, Clone, Debug)]
pub struct TaskArgs {
    /// Keep the variables of this task in files there: killed and started again, it has them as they were.
    #[arg(long, value_name = "DIR")]
    pub journal: Option<PathBuf>,

    /// Write what this task counts to an event file for TensorBoard, in DIR/<job>-<task>: steps, bytes in and out,
    /// gradients that came too late, lengths of queues.
    #[arg(long, value_name = "DIR")]
    pub metrics: Option<PathBuf>,

    /// How often: seconds, or steps as in `100steps`.
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = interval)]
    pub metrics_interval: Interval,

    /// How the accumulators of synchronous training on this task count gradients. tf: as TensorFlow does, whoever
    /// brings them. exact: one of each worker for each step. shrink: likewise, but a worker that is lost is not
    /// waited for.
    #[arg(long, default_value = "tf", value_name = "exact|shrink|tf", value_parser = policy)]
    pub sync_policy: Policy,
}

/// How often something is written, as it was said.
#[derive(Clone, Debug)]
pub struct Interval {
    text: String,
    pub every: Every,
}

/// How gradients are counted, as it was said.
#[derive(Clone, Debug)]
pub struct Policy {
    text: String,
    pub policy: SyncPolicy,
}

impl TaskArgs {
    /// The same flags for one task of several: what each keeps, it keeps in a folder of its own.
    pub fn for_task(&self, task: &Task) -> Vec<String> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let mut flags = vec!["--sync-policy".to_string(), self.sync_policy.text.clone()];
        if let Some(folder) = &self.journal {
            let own = folder.join(format!("{}-{}", task.job, task.index));
            flags.extend(["--journal".to_string(), path(&own)]);
        }
        if let Some(folder) = &self.metrics {
            let interval = self.metrics_interval.text.clone();
            flags.extend(["--metrics".to_string(), path(folder), "--metrics-interval".to_string(), interval]);
        }
        flags
    }
}

fn policy(text: &str) -> Result<Policy, String> {
    let policy = text.parse().map_err(|error: flowgrid::Error| error.message)?;
    Ok(Policy { text: text.to_string(), policy })
}

fn interval(text: &str) -> Result<Interval, String> {
    let bad =
        || format!("'{text}' is neither a number of seconds between 0.1 and 86400, nor of steps, as in '100steps'");
    let every = match text.strip_suffix("steps") {
        Some(steps) => Every::Steps(steps.trim().parse().ok().filter(|&steps: &i64| steps > 0).ok_or_else(bad)?),
        None => {
            let seconds = text.strip_suffix('s').unwrap_or(text).parse().ok();
            let seconds = seconds.filter(|seconds| (0.1..=86_400.0).contains(seconds)).ok_or_else(bad)?;
            Every::Time(Duration::from_secs_f64(seconds))
        }
    };
    Ok(Interval { text: text.to_string(), every })
}

#[cfg(test)]
mod tests;
