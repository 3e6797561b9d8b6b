//! Tables on standard output. A column is as wide as its widest cell.

use crate::output::print_line;
use anyhow::Result;

/// Prints rows under a heading. Numbers are aligned to the right.
pub fn print(heading: &[&str], rows: &[Vec<String>]) -> Result<()> {
    let widths: Vec<usize> = heading
        .iter()
        .enumerate()
        .map(|(column, title)| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0).max(width(title)))
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, &width)| pad(cell, width)).collect();
        print_line!("{}", padded.join("  ").trim_end())
    };
    line(&mut heading.iter().copied())?;
    print_line!("{}", widths.iter().map(|&width| "-".repeat(width)).collect::<Vec<_>>().join("  "))?;
    rows.iter().try_for_each(|row| line(&mut row.iter().map(String::as_str)))
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

fn pad(cell: &str, wanted: usize) -> String {
    let space = " ".repeat(wanted.saturating_sub(width(cell)));
    let is_number = cell.parse::<f64>().is_ok();
    if is_number { format!("{space}{cell}") } else { format!("{cell}{space}") }
}

/// The text, cut to `limit` characters.
pub fn shortened(text: &str, limit: usize) -> String {
    match width(text) > limit {
        true => text.chars().take(limit.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_string(),
    }
}
