//! Comma-separated values. Lists are JSON arrays in a field.

use super::json_format::array;
use super::{Cell, Row, RowFile, RowWriter, Schema, Typed, at};
use crate::fs::{FileSink, carried};
use crate::record::CompressedSink;
use bytes::Bytes;
use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};
use status::{Error, Result, invalid};
use std::io::Read;

type Source = Box<dyn Read + Send>;

/// The rows of a file whose first line has the names of the columns.
pub(super) fn rows(source: Source, path: &str) -> Result<impl Iterator<Item = Result<Row>> + Send + use<>> {
    let (mut reader, names) = open(source, path)?;
    let (path, mut record, mut number) = (path.to_string(), ByteRecord::new(), 0);
    Ok(std::iter::from_fn(move || {
        number += 1;
        let found = reader.read_byte_record(&mut record).map_err(failed);
        let row = found.and_then(|found| if found { row(&names, &record).map(Some) } else { Ok(None) }).transpose()?;
        Some(row.map_err(|error| at(error, &path, number, &place(&reader, &record))))
    }))
}

/// The names of the columns.
pub(super) fn columns(source: Source, path: &str) -> Result<Vec<String>> {
    Ok(open(source, path)?.1)
}

fn open(source: Source, path: &str) -> Result<(Reader<Source>, Vec<String>)> {
    // Rows with too few or too many fields are found here, where their place is known.
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(source);
    let wrong = |error: Error| Error { message: format!("{path}: line 1: {}", error.message), ..error };
    let names = reader.byte_headers().map_err(failed).and_then(names).map_err(wrong)?;
    Ok((reader, names))
}

fn names(header: &ByteRecord) -> Result<Vec<String>> {
    if header.is_empty() {
        return Err(invalid!("the file is empty; expected the names of the columns"));
    }
    let names = header.iter().enumerate().map(|(place, name)| text_of(name, || format!("the name of column {place}")));
    let names = names.collect::<Result<Vec<String>>>()?;
    match names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
        Some((_, name)) => Err(invalid!("two columns have the name '{name}'")),
        None => Ok(names),
    }
}

fn row(names: &[String], record: &ByteRecord) -> Result<Row> {
    if record.len() != names.len() {
        return Err(invalid!("found {} fields, but the first line names {} columns", record.len(), names.len()));
    }
    let cell = |(name, field): (&String, &[u8])| {
        let text = text_of(field, || format!("the field of column '{name}'"))?;
        Ok((name.clone(), Cell::Untyped(text)))
    };
    names.iter().zip(record).map(cell).collect()
}

fn text_of(bytes: &[u8], what: impl FnOnce() -> String) -> Result<String> {
    let text = std::str::from_utf8(bytes);
    text.map(str::to_string).map_err(|error| invalid!("{} is not UTF-8 from byte {} on", what(), error.valid_up_to()))
}

/// Where a row begins; after an error, where reading ended.
fn place(reader: &Reader<Source>, record: &ByteRecord) -> String {
    let position = record.position().unwrap_or(reader.position());
    format!(" (line {}, offset {})", position.line(), position.byte())
}

fn failed(error: csv::Error) -> Error {
    match error.into_kind() {
        ErrorKind::Io(error) => carried::<()>(Err(error)).err().unwrap_or_else(|| invalid!("cannot be read")),
        kind => invalid!("{kind:?}"),
    }
}

pub(super) fn writer(file: &RowFile, schema: &Schema) -> Result<Writer> {
    schema.some_columns()?;
    let sink = CompressedSink::new(FileSink(file.create()?), file.compression);
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

/// A value as text. Floats always have a point or an exponent, so that they are floats for a reader, too.
fn field(values: Typed) -> Result<String> {
    let text = match values {
        Typed::Ints(values) => values.first().map(i64::to_string),
        Typed::Floats(values) => values.first().map(|value| format!("{value:?}")),
        Typed::Doubles(values) => values.first().map(|value| format!("{value:?}")),
        Typed::Bytes(values) => values.first().map(text).transpose()?,
    };
    Ok(text.unwrap_or_default())
}

fn text(bytes: &Bytes) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| {
        invalid!("a value is not UTF-8 text, so a CSV file cannot hold it; convert to tfrecord, jsonl or parquet")
    })
}
