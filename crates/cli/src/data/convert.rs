//! `flowgrid data convert`: writes the rows of a file in another format.

use super::described;
use super::inputs::Inputs;
use super::progress::Progress;
use crate::files;
use crate::output::print_line;
use crate::table::print;
use anyhow::{Context, Result};
use io::rows::{Format, RowFile};
use io::{Compression, FileSystems};

/// Flags of `flowgrid data convert`.
#[derive(clap::Args)]
pub struct Args {
    /// The file to read; the files of a pattern such as `'train-*'` are read one after another.
    input: String,

    /// The file to write. It gets its name when it is complete.
    output: String,

    /// The format of the input, if its name and its first bytes do not say it: tfrecord, csv, jsonl or parquet.
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
    let output = output(&systems, &args.output, args.to.as_deref())?;
    let inputs = Inputs::find(&systems, &args.input, args.from.as_deref())?;
    inputs.check_output(&systems, &args.output)?;
    let (_, schema) = inputs.sample(&args.columns)?;
    print(&["column", "type", ""], &described(&schema))?;
    let mut progress = Progress::new(inputs.size()?);
    let mut writer = output.writer(&schema)?;
    for (number, row) in inputs.rows(progress.read()).enumerate() {
        writer.write(row?).with_context(|| format!("row {} of {}", number + 1, args.input))?;
        progress.row();
    }
    writer.close()?;
    print_line!("\n{} rows in {}", progress.finish(), args.output)
}

fn output(systems: &FileSystems, path: &str, format: Option<&str>) -> Result<RowFile> {
    let Some(format) = format else { return Ok(RowFile::named(systems, path)?) };
    let compression = Format::of_file(path).map_or(Compression::None, |(_, compression)| compression);
    Ok(RowFile { systems: systems.clone(), path: path.to_string(), format: Format::from_name(format)?, compression })
}
