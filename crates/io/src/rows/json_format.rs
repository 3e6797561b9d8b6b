//! JSON lines: an object on each line. Bytes that are not UTF-8 are `{"b64": "…"}`, as for TensorFlow Serving.

use super::{Cell, Row, RowFile, RowWriter, Schema};
use crate::example::{Values, from_base64, to_base64};
use crate::fs::{FileSink, carried};
use crate::record::CompressedSink;
use bytes::Bytes;
use serde_json::{Map, Value};
use status::{Error, Result, invalid};
use std::io::{BufRead, BufReader, Read, Write};

/// The rows of a file. Empty lines are skipped.
pub(super) fn rows(source: Box<dyn Read + Send>, path: &str) -> impl Iterator<Item = Result<Row>> + Send + use<> {
    let path = path.to_string();
    let lines = BufReader::with_capacity(1 << 18, source).lines().enumerate();
    lines.filter_map(move |(number, line)| {
        let row = match line {
            Ok(line) if line.trim().is_empty() => return None,
            Ok(line) => row(&line),
            Err(error) => Err(Error::from(error)),
        };
        Some(row.map_err(|error| invalid!("{path}: line {}: {}", number + 1, error.message)))
    })
}

fn row(line: &str) -> Result<Row> {
    match serde_json::from_str(line).map_err(|error| invalid!("{error}"))? {
        Value::Object(members) => members.into_iter().map(|(name, value)| Ok((name, cell(value)?))).collect(),
        other => Err(invalid!("expected an object, got {other}")),
    }
}

fn cell(value: Value) -> Result<Cell> {
    Ok(match value {
        Value::Null => Cell::Missing,
        Value::Bool(value) => Cell::Int(value.into()),
        Value::Number(number) => match number.as_i64() {
            Some(value) => Cell::Int(value),
            None => Cell::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cell::Bytes(text.into()),
        Value::Array(values) => Cell::List(values.into_iter().map(flat).collect::<Result<_>>()?),
        Value::Object(members) => encoded(&members)?,
    })
}

/// An element of a list, which must not be a list itself.
fn flat(value: Value) -> Result<Cell> {
    match cell(value)? {
        Cell::List(_) => Err(invalid!("lists of lists cannot be stored; write their elements one after another")),
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
pub(super) fn array(values: &Values) -> Result<Value> {
    Ok(Value::Array(match values {
        Values::Ints(values) => values.iter().map(|&value| value.into()).collect(),
        Values::Floats(values) => values.iter().map(|&value| number(value)).collect::<Result<_>>()?,
        Values::Bytes(values) => values.iter().map(string).collect(),
    }))
}

/// A float with the digits that identify it, not those of the nearest double.
fn number(value: f32) -> Result<Value> {
    let exact = value.to_string().parse::<f64>().ok().and_then(serde_json::Number::from_f64);
    exact.map(Value::Number).ok_or_else(|| invalid!("JSON has no number for {value}"))
}

fn string(bytes: &Bytes) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => Value::Object([("b64".to_string(), to_base64(bytes).into())].into_iter().collect()),
    }
}

pub(super) fn writer(file: &RowFile, schema: &Schema) -> Result<Writer> {
    let sink = CompressedSink::new(FileSink(file.systems.create(&file.path)?), file.compression);
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
