//! JSON lines: an object on each line. Bytes that are not UTF-8 are `{"b64": "…"}`, as for TensorFlow Serving.

use super::{Cell, Row, RowFile, RowWriter, Schema, Typed, at};
use crate::example::{from_base64, to_base64};
use crate::fs::{FileSink, carried};
use crate::record::CompressedSink;
use bytes::Bytes;
use serde_json::{Map, Value};
use status::{Error, Result, invalid};
use std::io::{BufRead, BufReader, Read, Write};

/// The rows of a file. Empty lines are skipped.
pub(super) fn rows(source: Box<dyn Read + Send>, path: &str) -> impl Iterator<Item = Result<Row>> + Send + use<> {
    let (path, mut number) = (path.to_string(), 0);
    let mut lines = Lines { source: BufReader::with_capacity(1 << 18, source), line: Vec::new(), number: 0, offset: 0 };
    std::iter::from_fn(move || {
        number += 1;
        let row = lines.next().and_then(|found| if found { row(&lines.line).map(Some) } else { Ok(None) });
        let place = || format!(" (line {}, offset {})", lines.number, lines.offset);
        Some(row.transpose()?.map_err(|error| at(error, &path, number, &place())))
    })
}

/// A file by lines.
struct Lines<R> {
    source: BufReader<R>,
    line: Vec<u8>,
    /// The number of the line, from 1 on.
    number: u64,
    /// Where it begins.
    offset: u64,
}

impl<R: Read> Lines<R> {
    /// Reads the next line that is not empty. Returns false at the end.
    fn next(&mut self) -> Result<bool> {
        loop {
            self.number += 1;
            self.offset += self.line.len() as u64;
            self.line.clear();
            carried(self.source.read_until(b'\n', &mut self.line))?;
            if self.line.is_empty() || !text(&self.line).trim_ascii().is_empty() {
                return Ok(!self.line.is_empty());
            }
        }
    }
}

/// The line without the mark that some programs write at the start of UTF-8 files.
fn text(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

fn row(line: &[u8]) -> Result<Row> {
    let line = std::str::from_utf8(text(line))
        .map_err(|error| invalid!("the line is not UTF-8 from byte {} on", error.valid_up_to()))?;
    match serde_json::from_str(line).map_err(|error| wrong(&error))? {
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| match cell(value) {
                Ok(cell) => Ok((name, cell)),
                Err(error) => Err(invalid!("'{name}': {}", error.message)),
            })
            .collect(),
        other => Err(invalid!("expected an object, got {}", kind(&other))),
    }
}

/// The error without the number of the line, which is always 1 here.
fn wrong(error: &serde_json::Error) -> Error {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text);
    invalid!("{reason} at column {}", error.column())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn cell(value: Value) -> Result<Cell> {
    Ok(match value {
        Value::Null => Cell::Missing,
        Value::Bool(value) => Cell::Int(value.into()),
        Value::Number(number) => match number.as_i64() {
            Some(value) => Cell::Int(value),
            None if number.is_u64() => Cell::Untyped(number.to_string()),
            None => Cell::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cell::Bytes(text.into()),
        Value::Array(values) => Cell::List(values.into_iter().map(flat).collect::<Result<_>>()?),
        Value::Object(members) => encoded(&members)?,
    })
}

/// An element of a list, which must be one value.
fn flat(value: Value) -> Result<Cell> {
    match cell(value)? {
        Cell::List(_) => Err(invalid!("lists of lists cannot be stored; write their elements one after another")),
        Cell::Missing => Err(invalid!("null in a list cannot be stored; leave it out or write another value")),
        cell => Ok(cell),
    }
}

fn encoded(members: &Map<String, Value>) -> Result<Cell> {
    let text = members.get("b64").and_then(Value::as_str).filter(|_| members.len() == 1);
    let bytes = text.and_then(from_base64);
    let bytes =
        bytes.ok_or_else(|| invalid!("objects within a row cannot be stored, except {{\"b64\": \"…\"}} for bytes"))?;
    Ok(Cell::Bytes(bytes.into()))
}

/// The elements of a JSON array in a text; none if it is something else.
pub(super) fn list(text: &str) -> Option<Vec<Cell>> {
    if !text.trim_start().starts_with('[') {
        return None;
    }
    let Ok(Value::Array(values)) = serde_json::from_str(text) else { return None };
    values.into_iter().map(|value| flat(value).ok()).collect()
}

/// Values as a JSON array.
pub(super) fn array(values: &Typed) -> Result<Value> {
    Ok(Value::Array(match values {
        Typed::Ints(values) => values.iter().map(|&value| value.into()).collect(),
        Typed::Floats(values) => values.iter().map(|&value| number(shortest(value))).collect::<Result<_>>()?,
        Typed::Doubles(values) => values.iter().map(|&value| number(value)).collect::<Result<_>>()?,
        Typed::Bytes(values) => values.iter().map(string).collect(),
    }))
}

/// The double whose digits identify a float. Those of the equal double are more.
fn shortest(value: f32) -> f64 {
    let double = value.to_string().parse().unwrap_or(f64::from(value));
    if double as f32 == value { double } else { value.into() }
}

fn number(value: f64) -> Result<Value> {
    serde_json::Number::from_f64(value).map(Value::Number).ok_or_else(|| invalid!("JSON has no number for {value}"))
}

fn string(bytes: &Bytes) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => Value::Object([("b64".to_string(), to_base64(bytes).into())].into_iter().collect()),
    }
}

pub(super) fn writer(file: &RowFile, schema: &Schema) -> Result<Writer> {
    let sink = CompressedSink::new(FileSink(file.create()?), file.compression);
    Ok(Writer { sink, schema: schema.clone() })
}

pub(super) struct Writer {
    sink: CompressedSink,
    schema: Schema,
}

impl RowWriter for Writer {
    fn write(&mut self, row: Row) -> Result<()> {
        let mut members = Map::new();
        let values = self.schema.convert(row)?;
        for (column, values) in self.schema.columns.iter().zip(values) {
            let value = match values.as_ref().map(array).transpose()? {
                Some(Value::Array(mut one)) if !column.list => one.pop().unwrap_or(Value::Null),
                Some(array) => array,
                None => continue,
            };
            members.insert(column.name.clone(), value);
        }
        carried(writeln!(self.sink, "{}", Value::Object(members)))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.sink.close()
    }
}
