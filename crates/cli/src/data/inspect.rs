//! `flowgrid data inspect`: the columns and the first rows of a file.

use super::described;
use super::inputs::Inputs;
use super::progress::Progress;
use crate::files;
use crate::output::print_line;
use crate::table::{print, shortened};
use anyhow::Result;
use io::rows::Cell;

/// The width at which a value is cut.
const WIDTH: usize = 40;

/// Flags of `flowgrid data inspect`.
#[derive(clap::Args)]
pub struct Args {
    /// The file, or a pattern such as `'train-*'`.
    path: String,

    /// The format, if the name and the first bytes of the file do not say it: tfrecord, csv, jsonl or parquet.
    #[arg(long)]
    format: Option<String>,

    /// How many rows to show.
    #[arg(long, default_value_t = 5)]
    rows: usize,

    /// Count all rows, which reads the whole file.
    #[arg(long)]
    count: bool,
}

/// Shows the file.
pub fn run(args: Args) -> Result<()> {
    let inputs = Inputs::find(&files::systems(), &args.path, args.format.as_deref())?;
    let (rows, schema) = inputs.sample(&[])?;
    print(&["column", "type", ""], &described(&schema))?;
    for (number, row) in rows.iter().take(args.rows).enumerate() {
        print_line!("\nrow {}", number + 1)?;
        row.iter().try_for_each(|(name, cell)| print_line!("  {name}: {}", shortened(&text(cell), WIDTH)))?;
    }
    if args.count {
        let mut progress = Progress::new(inputs.size()?);
        inputs.rows(progress.read()).try_for_each(|row| row.map(|_| progress.row()))?;
        print_line!("\n{} rows, {} bytes", progress.finish(), inputs.size()?)?;
    }
    Ok(())
}

fn text(cell: &Cell) -> String {
    match cell {
        Cell::Missing => "-".to_string(),
        Cell::Untyped(text) => text.clone(),
        Cell::Int(value) => value.to_string(),
        Cell::Float(value) => format!("{value:?}"),
        Cell::Single(value) => format!("{value:?}"),
        Cell::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_string(),
            Err(_) => format!("{} bytes", bytes.len()),
        },
        Cell::List(cells) => format!("[{}]", cells.iter().map(text).collect::<Vec<_>>().join(", ")),
    }
}
