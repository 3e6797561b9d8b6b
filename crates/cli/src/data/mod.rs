//! `flowgrid data`: shows, converts, splits and verifies files of training data.

mod convert;
mod inspect;
mod progress;
mod shard;
mod verify;

use anyhow::Result;
use clap::Subcommand;
use io::rows::{Format, Row, RowFile, Schema};
use io::{Compression, FileSystems};

/// The number of rows from which a schema is guessed.
const SAMPLE: usize = 1000;

/// Flags of `flowgrid data`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    flowgrid data inspect train.tfrecord\n  \
    flowgrid data convert train.csv train.tfrecord\n  \
    flowgrid data convert train.csv.gz train.jsonl --column zip=text\n  \
    flowgrid data shard train.tfrecord --shards 8 --out shards/train.tfrecord\n  \
    flowgrid data verify shards/*.tfrecord\n\n\
    The name of a file says its format (.tfrecord, .csv, .jsonl, .parquet) and its compression (.gz, .zz).\n\
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
    /// Check that TFRecord and event files are complete and undamaged.
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

/// How a file is named on the command line, and what its name does not say.
fn row_file(systems: &FileSystems, path: &str, format: Option<&str>) -> Result<RowFile> {
    let Some(format) = format else { return Ok(RowFile::named(systems, path)?) };
    let compression = Format::of_file(path).map_or(Compression::None, |(_, compression)| compression);
    Ok(RowFile { systems: systems.clone(), path: path.to_string(), format: Format::from_name(format)?, compression })
}

/// The first rows of a file and the schema that they suggest, with the columns that the user sets.
fn sample(file: &RowFile, columns: &[String]) -> Result<(Vec<Row>, Schema)> {
    let rows: Vec<Row> = file.rows()?.0.take(SAMPLE).collect::<status::Result<_>>()?;
    let mut schema = Schema::guess(&rows);
    columns.iter().try_for_each(|column| schema.set(column))?;
    Ok((rows, schema))
}

/// The schema as lines `name: type`.
fn described(schema: &Schema) -> Vec<Vec<String>> {
    let row = |column: &io::rows::Column| {
        let missing = if column.optional { "may be missing" } else { "" };
        vec![column.name.clone(), column.to_string(), missing.to_string()]
    };
    schema.columns.iter().map(row).collect()
}
