//! TFRecord files of Example messages.

use super::{Cell, Row, RowFile, RowWriter, Schema, Typed, at};
use crate::example::{Example, Values};
use crate::{RecordReader, RecordWriter};
use status::{Result, invalid};
use std::io::Read;

/// The examples of a file as rows.
pub(super) fn rows<R: Read + Send>(
    reader: RecordReader<R>,
    path: &str,
) -> impl Iterator<Item = Result<Row>> + Send + use<R> {
    let path = path.to_string();
    let (mut reader, mut number) = (reader, 0);
    std::iter::from_fn(move || {
        number += 1;
        let offset = reader.offset();
        let record = reader.read().transpose()?;
        let row = record.and_then(|record| Ok(row(Example::decode(&record)?)));
        Some(row.map_err(|error| at(error, &path, number, &format!(" (offset {offset})"))))
    })
}

fn row(example: Example) -> Row {
    example.features.into_iter().map(|(name, values)| (name, cell(values))).collect()
}

fn cell(values: Values) -> Cell {
    let mut cells: Vec<Cell> = match values {
        Values::Bytes(values) => values.into_iter().map(Cell::Bytes).collect(),
        Values::Floats(values) => values.into_iter().map(Cell::Single).collect(),
        Values::Ints(values) => values.into_iter().map(Cell::Int).collect(),
    };
    if cells.len() == 1 { cells.swap_remove(0) } else { Cell::List(cells) }
}

pub(super) fn writer(file: &RowFile, schema: &Schema) -> Result<Writer> {
    Ok(Writer { records: file.record_writer()?, schema: schema.clone() })
}

pub(super) struct Writer {
    records: RecordWriter,
    schema: Schema,
}

impl RowWriter for Writer {
    fn write(&mut self, row: Row) -> Result<()> {
        let values = self.schema.convert(row)?;
        let mut example = Example::new();
        for (column, values) in self.schema.columns.iter().zip(values) {
            if let Some(values) = values {
                example.features.insert(column.name.clone(), feature(&column.name, values)?);
            }
        }
        self.records.write(&example.encode())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.records.close()
    }
}

fn feature(name: &str, values: Typed) -> Result<Values> {
    Ok(match values {
        Typed::Ints(values) => Values::Ints(values),
        Typed::Floats(values) => Values::Floats(values),
        Typed::Doubles(values) => {
            Values::Floats(values.into_iter().map(|value| single(name, value)).collect::<Result<_>>()?)
        }
        Typed::Bytes(values) => Values::Bytes(values),
    })
}

/// The nearest float, since an Example has no others.
fn single(name: &str, value: f64) -> Result<f32> {
    let nearest = value as f32;
    if value.is_finite() && nearest.is_infinite() {
        return Err(invalid!(
            "column '{name}' has the value {value:?}, which is too large for the floats of an Example"
        ));
    }
    Ok(nearest)
}
