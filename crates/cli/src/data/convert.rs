//! `flowgrid data convert`: writes the rows of a file in another format.

use super::progress::Progress;
use super::{described, row_file, sample};
use crate::files;
use crate::output::print_line;
use crate::table::print;
use anyhow::{Context, Result};

/// Flags of `flowgrid data convert`.
#[derive(clap::Args)]
pub struct Args {
    /// The file to read.
    input: String,

    /// The file to write.
    output: String,

    /// The format of the input, if its name does not say it: tfrecord, csv, jsonl or parquet.
    #[arg(long)]
    from: Option<String>,

    /// The format of the output, if its name does not say it.
    #[arg(long)]
    to: Option<String>,

    /// Set the type of a column instead of guessing it: NAME=int, NAME=float, NAME=text, or 'NAME=int list'.
    #[arg(long = "column", value_name = "NAME=TYPE")]
    columns: Vec<String>,
}

/// Converts the file.
pub fn run(args: Args) -> Result<()> {
    let systems = files::systems();
    let input = row_file(&systems, &args.input, args.from.as_deref())?;
    let output = row_file(&systems, &args.output, args.to.as_deref())?;
    let (_, schema) = sample(&input, &args.columns)?;
    print(&["column", "type", ""], &described(&schema))?;
    let (rows, read) = input.rows()?;
    let mut progress = Progress::new(input.size()?, read);
    let mut writer = output.writer(&schema)?;
    for (number, row) in rows.enumerate() {
        let place = || format!("row {} of {}", number + 1, args.input);
        writer.write(row.with_context(place)?).with_context(place)?;
        progress.row();
    }
    writer.close()?;
    print_line!("\n{} rows in {}", progress.finish(), args.output)
}
