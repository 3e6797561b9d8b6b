//! Comma-separated values. Lists are JSON arrays in a field.

use super::json_format::array;
use super::{Cell, Row, RowFile, RowWriter, Schema};
use crate::example::Values;
use crate::fs::FileSink;
use crate::record::CompressedSink;
use bytes::Bytes;
use status::{Result, invalid};
use std::io::Read;

/// The rows of a file whose first line has the names of the columns.
pub(super) fn rows(
    source: Box<dyn Read + Send>,
    path: &str,
) -> Result<impl Iterator<Item = Result<Row>> + Send + use<>> {
    let mut reader = csv::ReaderBuilder::new().from_reader(source);
    let wrong = |path: &str, error: csv::Error| invalid!("{path}: {error}");
    let header = reader.headers().map_err(|error| wrong(path, error))?.clone();
    let path = path.to_string();
    Ok(reader.into_records().map(move |record| {
        let record = record.map_err(|error| wrong(&path, error))?;
        let cells = record.iter().map(|field| Cell::Untyped(field.to_string()));
        Ok(header.iter().map(str::to_string).zip(cells).collect())
    }))
}

pub(super) fn writer(file: &RowFile, schema: &Schema) -> Result<Writer> {
    let sink = CompressedSink::new(FileSink(file.systems.create(&file.path)?), file.compression);
    let mut writer = Writer { csv: csv::Writer::from_writer(sink), schema: schema.clone(), path: file.path.clone() };
    writer.record(schema.columns.iter().map(|column| column.name.clone()).collect())?;
    Ok(writer)
}

pub(super) struct Writer {
    csv: csv::Writer<CompressedSink>,
    schema: Schema,
    path: String,
}

impl Writer {
    fn record(&mut self, fields: Vec<String>) -> Result<()> {
        self.csv.write_record(fields).map_err(|error| invalid!("cannot write {}: {error}", self.path))
    }
}

impl RowWriter for Writer {
    fn write(&mut self, row: Row) -> Result<()> {
        let values = self.schema.convert(row)?;
        let columns = self.schema.columns.iter().zip(values);
        let fields = columns.map(|(column, values)| match values {
            None => Ok(String::new()),
            Some(values) if column.list => array(&values).map(|array| array.to_string()),
            Some(values) => field(values),
        });
        let fields = fields.collect::<Result<Vec<String>>>()?;
        self.record(fields)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let path = self.path;
        let sink = self.csv.into_inner().map_err(|error| invalid!("cannot write {path}: {}", error.error()))?;
        sink.close()
    }
}

fn field(values: Values) -> Result<String> {
    match values {
        Values::Ints(values) => Ok(values.first().map(i64::to_string).unwrap_or_default()),
        Values::Floats(values) => Ok(values.first().map(f32::to_string).unwrap_or_default()),
        Values::Bytes(values) => text(values.first().unwrap_or(&Bytes::new())),
    }
}

fn text(bytes: &Bytes) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| {
        invalid!("a value is not UTF-8 text, so a CSV file cannot hold it; convert to tfrecord, jsonl or parquet")
    })
}
