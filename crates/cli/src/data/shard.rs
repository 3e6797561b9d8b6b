//! `flowgrid data shard`: splits a file. Row number i goes to shard i modulo their number.

use super::inputs::Inputs;
use super::progress::Progress;
use crate::files;
use crate::output::print_line;
use anyhow::{Context, Result, bail};
use io::rows::{Format, RowFile, RowWriter};

/// Flags of `flowgrid data shard`.
#[derive(clap::Args)]
pub struct Args {
    /// The file to split, or a pattern such as `'train-*'`.
    input: String,

    /// The number of files to write.
    #[arg(long)]
    shards: usize,

    /// What the names of the shards begin with: `train.tfrecord` gives train.tfrecord-00000-of-00008 and so on. It says the
    /// format and compression of the shards; without a known suffix they are those of the input.
    #[arg(long)]
    out: String,

    /// The format of the input, if its name and its first bytes do not say it.
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
    let inputs = Inputs::find(&systems, &args.input, args.format.as_deref())?;
    let outputs = outputs(&inputs.files[0], &args.out, args.shards);
    outputs.iter().try_for_each(|output| inputs.check_output(&systems, &output.path))?;
    let is_records = |file: &RowFile| file.format == Format::TfRecord;
    let rows = match inputs.files.iter().chain(&outputs).all(is_records) {
        true => shard_records(&inputs, &outputs)?,
        false => shard_rows(&inputs, &outputs)?,
    };
    print_line!("{rows} rows in {} files, {} to {}", args.shards, outputs[0].path, outputs[args.shards - 1].path)
}

/// The shards. What their names do not say, they have in common with a file of the input.
fn outputs(input: &RowFile, out: &str, shards: usize) -> Vec<RowFile> {
    let (format, compression) = Format::of_file(out).unwrap_or((input.format, input.compression));
    let name = |shard: usize| format!("{out}-{shard:05}-of-{shards:05}");
    (0..shards).map(|shard| RowFile { path: name(shard), format, compression, ..input.clone() }).collect()
}

/// Copies records as they are, whatever they contain.
fn shard_records(inputs: &Inputs, outputs: &[RowFile]) -> Result<u64> {
    let mut writers = outputs.iter().map(RowFile::record_writer).collect::<status::Result<Vec<_>>>()?;
    let mut progress = Progress::new(inputs.size()?);
    let mut next = 0;
    for input in &inputs.files {
        let mut reader = input.records(progress.read())?;
        while let Some(record) = reader.read().with_context(|| input.path.clone())? {
            writers[next].write(&record)?;
            next = (next + 1) % writers.len();
            progress.row();
        }
    }
    writers.into_iter().try_for_each(io::RecordWriter::close)?;
    Ok(progress.finish())
}

fn shard_rows(inputs: &Inputs, outputs: &[RowFile]) -> Result<u64> {
    let (_, schema) = inputs.sample(&[])?;
    let mut writers = outputs.iter().map(|output| output.writer(&schema)).collect::<status::Result<Vec<_>>>()?;
    let mut progress = Progress::new(inputs.size()?);
    for (number, row) in inputs.rows(progress.read()).enumerate() {
        let to = number % writers.len();
        writers[to].write(row?).with_context(|| format!("row {}", number + 1))?;
        progress.row();
    }
    writers.into_iter().try_for_each(RowWriter::close)?;
    Ok(progress.finish())
}
