//! `flowgrid server`: one task of a cluster.

use crate::cluster_args::ClusterArgs;
use crate::numbers::{seconds, whole};
use crate::output::print_line;
use crate::task_args::TaskArgs;
use crate::{files, stop};
use anyhow::Result;
use flowgrid::train::ServerMetrics;
use session::{Extensions, Server, ServerOptions};
use std::time::Duration;

/// Flags of `flowgrid server`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    flowgrid server --cluster 'worker=127.0.0.1:2222'\n  \
    flowgrid server --cluster 'ps=h0:2222;worker=h1:2222,h2:2222' --job worker --task 1\n  \
    flowgrid server --ps_hosts=h0:2222 --worker_hosts=h1:2222 --job_name=ps --task_index=0\n  \
    flowgrid server --server-def server_def.pbtxt --task 1\n  \
    TF_CONFIG='{\"cluster\":{\"worker\":[\"127.0.0.1:2222\"]},\"task\":{\"type\":\"worker\",\"index\":0}}' flowgrid server\n\n\
    Then, in Python:  tf.compat.v1.Session(\"grpc://127.0.0.1:2222\")\n\
    It listens on the host of its own address in the cluster; --bind 0.0.0.0 makes it listen on all interfaces.")]
pub struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,

    /// Listen on the interface with this address, or on all with 0.0.0.0 or ::. The port stays that of the task's own
    /// address. Needed in a container or behind NAT, where that address is not one of this machine.
    #[arg(long, value_name = "HOST")]
    bind: Option<String>,

    /// Number of CPU devices of this task: /device:CPU:0, /device:CPU:1, … [default: 1]
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    cpu_devices: Option<usize>,

    /// Number of threads that run expensive ops in parallel; 0 means one for each processor. [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    inter_op_parallelism_threads: Option<usize>,

    /// Number of threads over which one op splits its loops; 0 means one for each processor. [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    intra_op_parallelism_threads: Option<usize>,

    /// Seconds without an answer after which another task counts as dead. A client counts as dead after three times
    /// as long.
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", value_parser = seconds)]
    peer_timeout: f64,

    #[command(flatten)]
    task: TaskArgs,

    /// Stop also when standard input ends, which happens when the process that started this task ends.
    #[arg(long)]
    stop_with_stdin: bool,
}

/// Serves until SIGTERM or SIGINT.
pub fn run(args: Args) -> Result<()> {
    let options = args.cluster.options(std::env::var("TF_CONFIG").ok().as_deref())?;
    let task = options.task.clone();
    let server = Server::start(ServerOptions {
        bind: args.bind,
        devices: args.cpu_devices.unwrap_or(options.devices),
        inter_op_threads: args.inter_op_parallelism_threads.unwrap_or(options.inter_op_threads),
        intra_op_threads: args.intra_op_parallelism_threads.unwrap_or(options.intra_op_threads),
        journal: args.task.journal,
        patience: Duration::from_secs_f64(args.peer_timeout),
        sync_policy: args.task.sync_policy.policy,
        extensions: Extensions::new().with(files::systems()),
        ..options
    })?;
    let metrics = args.task.metrics.map(|folder| {
        let every = args.task.metrics_interval.every;
        ServerMetrics::start(server.counters(), &files::systems(), folder, every)
    });
    let metrics = metrics.transpose()?;
    print_line!("{task} ready at {}", server.target())?;
    server.join(async {
        match args.stop_with_stdin {
            true => tokio::select! { () = stop::signalled() => {}, () = stop::input_ended() => {} },
            false => stop::signalled().await,
        }
    });
    Ok(metrics.map_or(Ok(()), ServerMetrics::close)?)
}
