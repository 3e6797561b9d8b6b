//! `flowgrid data shard`: splits a file. Row number i goes to shard i modulo their number.

use super::progress::Progress;
use super::{row_file, sample};
use crate::files;
use crate::output::print_line;
use anyhow::{Context, Result, bail};
use io::rows::{Format, RowFile, RowWriter};

/// Flags of `flowgrid data shard`.
#[derive(clap::Args)]
pub struct Args {
    /// The file to split.
    input: String,

    /// The number of files to write.
    #[arg(long)]
    shards: usize,

    /// What the names of the shards begin with: `train.tfrecord` gives train.tfrecord-00000-of-00008 and so on.
    #[arg(long)]
    out: String,

    /// The format, if the name of the file does not say it.
    #[arg(long)]
    format: Option<String>,
}

/// More files than this at once are not open in one process.
const MOST: usize = 1000;

/// Splits the file.
pub fn run(args: Args) -> Result<()> {
    if !(1..=MOST).contains(&args.shards) {
        bail!("--shards is {}; expected 1 to {MOST}", args.shards);
    }
    let systems = files::systems();
    let input = row_file(&systems, &args.input, args.format.as_deref())?;
    let name = |shard: usize| format!("{}-{shard:05}-of-{:05}", args.out, args.shards);
    let rows = match input.format {
        Format::TfRecord => shard_records(&input, args.shards, name)?,
        _ => shard_rows(&input, args.shards, name)?,
    };
    print_line!("{rows} rows in {} files, {} to {}", args.shards, name(0), name(args.shards - 1))
}

/// Copies records as they are, whatever they contain.
fn shard_records(input: &RowFile, shards: usize, name: impl Fn(usize) -> String) -> Result<u64> {
    let create = |shard| io::RecordWriter::create_on(&input.systems, &name(shard), input.compression);
    let mut writers = (0..shards).map(create).collect::<status::Result<Vec<_>>>()?;
    let mut reader = io::RecordReader::open_on(&input.systems, &input.path, input.compression)?;
    let mut progress = Progress::new(input.size()?, Default::default());
    let mut next = 0;
    while let Some(record) = reader.read().with_context(|| input.path.clone())? {
        writers[next].write(&record)?;
        next = (next + 1) % shards;
        progress.row();
    }
    writers.into_iter().try_for_each(io::RecordWriter::close)?;
    Ok(progress.finish())
}

fn shard_rows(input: &RowFile, shards: usize, name: impl Fn(usize) -> String) -> Result<u64> {
    let (_, schema) = sample(input, &[])?;
    let create = |shard| RowFile { path: name(shard), ..input.clone() }.writer(&schema);
    let mut writers = (0..shards).map(create).collect::<status::Result<Vec<_>>>()?;
    let (rows, read) = input.rows()?;
    let mut progress = Progress::new(input.size()?, read);
    for (number, row) in rows.enumerate() {
        writers[number % shards].write(row?)?;
        progress.row();
    }
    writers.into_iter().try_for_each(RowWriter::close)?;
    Ok(progress.finish())
}
