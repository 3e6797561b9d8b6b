//! TFRecord files of Example messages.

use super::{Cell, Row, RowFile, RowWriter, Schema};
use crate::example::{Example, Values};
use crate::{RecordReader, RecordWriter};
use status::{Error, Result};
use std::io::Read;

/// The examples of a file as rows.
pub(super) fn rows<R: Read + Send>(
    reader: RecordReader<R>,
    path: &str,
) -> impl Iterator<Item = Result<Row>> + Send + use<R> {
    let path = path.to_string();
    let mut reader = reader;
    std::iter::from_fn(move || {
        let offset = reader.offset();
        let record = reader.read().transpose()?;
        let row = record.and_then(|record| Ok(row(Example::decode(&record)?)));
        Some(row.map_err(|error| at(error, &path, offset)))
    })
}

/// The error with the file and the offset of the record.
fn at(error: Error, path: &str, offset: u64) -> Error {
    Error { message: format!("{path}: record at offset {offset}: {}", error.message), ..error }
}

fn row(example: Example) -> Row {
    example.features.into_iter().map(|(name, values)| (name, cell(values))).collect()
}

fn cell(values: Values) -> Cell {
    let mut cells: Vec<Cell> = match values {
        Values::Bytes(values) => values.into_iter().map(Cell::Bytes).collect(),
        Values::Floats(values) => values.into_iter().map(|value| Cell::Float(value.into())).collect(),
        Values::Ints(values) => values.into_iter().map(Cell::Int).collect(),
    };
    if cells.len() == 1 { cells.swap_remove(0) } else { Cell::List(cells) }
}

pub(super) fn writer(file: &RowFile, schema: &Schema) -> Result<Writer> {
    Ok(Writer { records: RecordWriter::create_on(&file.systems, &file.path, file.compression)?, schema: schema.clone() })
}

pub(super) struct Writer {
    records: RecordWriter,
    schema: Schema,
}

impl RowWriter for Writer {
    fn write(&mut self, row: Row) -> Result<()> {
        let values = self.schema.convert(row)?;
        let named = self.schema.columns.iter().zip(values);
        let features = named.filter_map(|(column, values)| Some((column.name.clone(), values?))).collect();
        self.records.write(&Example { features }.encode())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.records.close()
    }
}
