//! Tables on a terminal: columns as wide as their widest cell.

/// Prints rows under a heading; numbers go to the right.
pub fn print(heading: &[&str], rows: &[Vec<String>]) {
    let widths: Vec<usize> = heading
        .iter()
        .enumerate()
        .map(|(column, title)| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0).max(width(title)))
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, &width)| pad(cell, width)).collect();
        println!("{}", padded.join("  ").trim_end());
    };
    line(&mut heading.iter().copied());
    println!("{}", widths.iter().map(|&width| "-".repeat(width)).collect::<Vec<_>>().join("  "));
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

fn pad(cell: &str, wanted: usize) -> String {
    let space = " ".repeat(wanted.saturating_sub(width(cell)));
    let is_number = cell.parse::<f64>().is_ok();
    if is_number { format!("{space}{cell}") } else { format!("{cell}{space}") }
}

/// A text that fits in a column.
pub fn shortened(text: &str, limit: usize) -> String {
    match width(text) > limit {
        true => text.chars().take(limit.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_string(),
    }
}
