//! Flags of every task, whether `flowgrid server` starts it alone or `flowgrid local` starts all tasks.

use flowgrid::prelude::Every;
use session::{SyncPolicy, Task};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Durable variables, metrics, and the policy of synchronous training.
#[derive(clap::Args, Clone, Debug)]
pub struct TaskArgs {
    /// Keep the variables of this task in a journal in this folder. A task that is killed and started again with the
    /// same folder has the values that its variables had.
    #[arg(long, value_name = "DIR")]
    pub journal: Option<PathBuf>,

    /// Write the metrics of this task to an event file for TensorBoard in DIR/<job>-<task>: steps, bytes received and
    /// sent, stale gradients, sizes of queues.
    #[arg(long, value_name = "DIR")]
    pub metrics: Option<PathBuf>,

    /// The time between two reports of --metrics, in seconds, or a number of steps such as `100steps`.
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = interval)]
    pub metrics_interval: Interval,

    /// How the accumulators of synchronous training on this task count gradients. tf: every gradient counts, as in
    /// TensorFlow. exact: one gradient of each worker counts for each step. shrink: like exact, but steps do not wait
    /// for workers that are lost.
    #[arg(long, default_value = "tf", value_name = "exact|shrink|tf", value_parser = policy)]
    pub sync_policy: Policy,
}

/// The interval between two reports, with the text of its flag.
#[derive(Clone, Debug)]
pub struct Interval {
    text: String,
    pub every: Every,
}

/// The policy of synchronous training, with the text of its flag.
#[derive(Clone, Debug)]
pub struct Policy {
    text: String,
    pub policy: SyncPolicy,
}

impl TaskArgs {
    /// The same flags for one of several tasks. Each task has a journal folder of its own.
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
    let bad = || "expected a number of seconds from 0.1 to 86400, or a number of steps such as '100steps'".to_string();
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
