//! The program `flowgrid`: it serves tasks of a cluster, runs graphs, and shows what files contain.
#![forbid(unsafe_code)]

mod cluster_args;
mod data;
mod demo;
mod files;
mod graph_file;
mod inspect;
mod local;
mod log;
mod npy;
mod numbers;
mod output;
mod processes;
mod run;
mod server;
mod stop;
mod table;
mod task_args;
mod waiting;

use clap::{Parser, Subcommand};
use std::io::Write;
use std::process::ExitCode;
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
    /// Train a network that recognises digits, on a cluster that it starts.
    Demo(demo::Args),
    /// Run a graph once: feed some tensors, fetch others.
    Run(run::Args),
    /// Show what a graph, a saved model, a checkpoint or an event file contains.
    Inspect(inspect::Args),
    /// Show, convert, split and verify files of training data.
    Data(data::Args),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<output::ClosedPipe>() => ExitCode::from(output::CLOSED_PIPE),
        Err(error) => {
            // Without the backtrace that anyhow adds to `{:?}`: a user cannot use it. A closed standard error is ignored,
            // as the exit code says that the command failed.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    log::begin()?;
    match command {
        Command::Server(args) => server::run(args),
        Command::Local(args) => local::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Run(args) => run::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Data(args) => data::run(args),
    }
}

#[cfg(test)]
mod documented;
