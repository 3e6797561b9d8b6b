//! `flowgrid data inspect`: the columns and the first rows of a file.

use super::{described, row_file, sample};
use crate::files;
use crate::output::print_line;
use crate::table::{print, shortened};
use anyhow::Result;
use io::rows::{Cell, Row};

/// The width at which a value is cut.
const WIDTH: usize = 40;

/// Flags of `flowgrid data inspect`.
#[derive(clap::Args)]
pub struct Args {
    /// The file.
    path: String,

    /// The format, if the name of the file does not say it: tfrecord, csv, jsonl or parquet.
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
    let file = row_file(&files::systems(), &args.path, args.format.as_deref())?;
    let (rows, schema) = sample(&file, &[])?;
    print(&["column", "type", ""], &described(&schema))?;
    for (number, row) in rows.iter().take(args.rows).enumerate() {
        print_line!("\nrow {number}")?;
        row.iter().try_for_each(|(name, cell)| print_line!("  {name}: {}", shortened(&text(cell), WIDTH)))?;
    }
    if args.count {
        let count = file.rows()?.0.try_fold(0u64, |count, row: status::Result<Row>| row.map(|_| count + 1))?;
        print_line!("\n{count} rows, {} bytes", file.size()?)?;
    }
    Ok(())
}

fn text(cell: &Cell) -> String {
    match cell {
        Cell::Missing => "-".to_string(),
        Cell::Untyped(text) => text.clone(),
        Cell::Int(value) => value.to_string(),
        Cell::Float(value) => value.to_string(),
        Cell::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_string(),
            Err(_) => format!("{} bytes", bytes.len()),
        },
        Cell::List(cells) => format!("[{}]", cells.iter().map(text).collect::<Vec<_>>().join(", ")),
    }
}
