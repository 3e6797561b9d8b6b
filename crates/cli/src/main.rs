//! I am the program.
#![forbid(unsafe_code)]

mod cluster_args;
mod server;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
}

fn main() -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match Cli::parse().command {
        Command::Server(args) => server::run(args),
    }
}
