//! `flowgrid data`: shows, converts, splits and verifies files of training data.

mod convert;
mod inputs;
mod inspect;
mod progress;
mod shard;
mod verify;

use anyhow::Result;
use clap::Subcommand;
use io::rows::Schema;

/// Flags of `flowgrid data`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    flowgrid data inspect train.tfrecord\n  \
    flowgrid data convert train.csv train.tfrecord\n  \
    flowgrid data convert train.csv.gz train.jsonl --column zip=text\n  \
    flowgrid data shard train.tfrecord --shards 8 --out shards/train.tfrecord\n  \
    flowgrid data convert 'shards/train.tfrecord-*' all.jsonl\n  \
    flowgrid data verify shards/*\n\n\
    The name of a file says its format (.tfrecord, .csv, .jsonl, .parquet) and its compression (.gz, .zz), also\n\
    before -00000-of-00008. For other names the first bytes of the file say it.\n\
    Names may have the scheme of any file system that the program was built with, such as s3://.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the columns and the first rows of a file.
    Inspect(inspect::Args),
    /// Convert a file to another format.
    Convert(convert::Args),
    /// Split a file into several with almost equal numbers of rows.
    Shard(shard::Args),
    /// Check that files are complete and undamaged.
    Verify(verify::Args),
}

/// Runs a command.
pub fn run(args: Args) -> Result<()> {
    match args.command {
        Command::Inspect(args) => inspect::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Shard(args) => shard::run(args),
        Command::Verify(args) => verify::run(args),
    }
}

/// The schema as lines `name: type`.
fn described(schema: &Schema) -> Vec<Vec<String>> {
    let row = |column: &io::rows::Column| {
        let missing = if column.optional { "may be missing" } else { "" };
        vec![column.name.clone(), column.to_string(), missing.to_string()]
    };
    schema.columns.iter().map(row).collect()
}
