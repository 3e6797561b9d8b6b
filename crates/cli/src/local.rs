//! `flowgrid local`: a whole cluster on this machine, for development.

use crate::numbers::whole;
use crate::output::print_line;
use crate::processes::Processes;
use crate::task_args::TaskArgs;
use crate::{stop, table};
use anyhow::{Result, bail};
use session::{Task, tf_config};
use std::time::Duration;

/// Flags of `flowgrid local`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    flowgrid local --ps 2 --workers 3\n  \
    flowgrid local --sync-policy shrink --journal journal --metrics logs\n\n\
    Prints the address of every task, the --cluster flag and the TF_CONFIG lines, and serves until Ctrl-C.\n\
    Then, in Python:  tf.compat.v1.Session(\"grpc://…\") with the address of a worker.")]
pub struct Args {
    /// Number of parameter servers.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = whole::<usize>)]
    ps: usize,

    /// Number of workers.
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = whole::<usize>)]
    workers: usize,

    #[command(flatten)]
    task: TaskArgs,
}

/// The time between two checks whether all tasks are alive.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Serves until SIGTERM, SIGINT, or the end of a task.
pub fn run(args: Args) -> Result<()> {
    anyhow::ensure!(args.ps + args.workers > 0, "the cluster has no tasks: give --ps or --workers a number above 0");
    let mut processes =
        Processes::start(&[("ps", args.ps), ("worker", args.workers)], |task| args.task.for_task(task))?;
    let stopped = stop::on_signal()?;
    print(&processes)?;
    loop {
        if stopped.recv_timeout(CHECK_INTERVAL).is_ok() {
            return Ok(());
        }
        if let Some((task, status)) = processes.ended() {
            bail!("{task} ended unexpectedly ({status}); the other tasks are stopped");
        }
    }
}

fn print(processes: &Processes) -> Result<()> {
    let row = |(task, process): (&Task, u32)| vec![task.to_string(), processes.target(task), process.to_string()];
    table::print(&["task", "target", "process"], &processes.tasks().map(row).collect::<Vec<_>>())?;
    print_line!("\n--cluster '{}'\n", processes.cluster)?;
    for (task, _) in processes.tasks() {
        print_line!("TF_CONFIG='{}'", tf_config(&processes.cluster, task))?;
    }
    print_line!("\nready; Ctrl-C stops all tasks")
}
