//! I am the program.
#![forbid(unsafe_code)]

mod cluster_args;
mod demo;
mod files;
mod inspect;
mod local;
mod log;
mod npy;
mod processes;
mod run;
mod server;
mod stop;
mod table;
mod task_args;

use clap::{Parser, Subcommand};
use tensor::Recycling;

#[global_allocator]
static ALLOCATOR: Recycling<mimalloc::MiMalloc> = Recycling::new(mimalloc::MiMalloc);

/// Runs TensorFlow 1.x graphs on a cluster of parameter servers and workers.
#[derive(Parser)]
#[command(name = "flowgrid", version, about, long_about = None)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start one task of a cluster and serve until SIGTERM or SIGINT.
    Server(server::Args),
    /// Start a whole cluster on this machine and serve until Ctrl-C.
    Local(local::Args),
    /// Train a network that reads digits, with a progress bar.
    Demo(demo::Args),
    /// Run a graph once: feed some tensors, fetch others.
    Run(run::Args),
    /// Show what is in a graph, a saved model, a checkpoint or an event file.
    Inspect(inspect::Args),
}

fn main() -> anyhow::Result<()> {
    log::begin()?;
    match Cli::parse().command {
        Command::Server(args) => server::run(args),
        Command::Local(args) => local::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Run(args) => run::run(args),
        Command::Inspect(args) => inspect::run(args),
    }
}
