//! Parquet files of flat columns and of lists.

use super::{Cell, Column, Row, RowFile, RowWriter, Schema, Type, Typed, at};
use crate::fs::{FileSink, FileStream, RandomAccessFile};
use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, FileReader, Length};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type as Node;
use status::{Error, Result, invalid};
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of rows that are written together.
const GROUP: usize = 65_536;

struct Source {
    file: Arc<dyn RandomAccessFile>,
    size: u64,
    read: Arc<AtomicU64>,
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Source {
    type T = BufReader<FileStream>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(FileStream::new(self.file.clone(), start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Err(ParquetError::EOF(format!("{length} bytes at offset {start} are beyond the end of the file")));
        }
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            let count = self.file.read_at(start + filled as u64, &mut bytes[filled..]);
            match count.map_err(|error| ParquetError::General(error.to_string()))? {
                0 => return Err(ParquetError::EOF(format!("the file ends at {}", start + filled as u64))),
                count => filled += count,
            }
        }
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(bytes.into())
    }
}

/// The rows of a file.
pub(super) fn rows(file: &RowFile, read: Arc<AtomicU64>) -> Result<impl Iterator<Item = Result<Row>> + Send + use<>> {
    let path = file.path.clone();
    let reader = open(file, read)?;
    let mut rows = caught(|| Ok(RowIter::from_file_into(Box::new(reader)))).map_err(|error| wrong(&path, error))?;
    let mut number = 0;
    Ok(std::iter::from_fn(move || {
        number += 1;
        let found = caught(|| rows.next().transpose()).and_then(|found| found.as_ref().map(row).transpose());
        found.map_err(|error| at(error, &path, number, "")).transpose()
    }))
}

/// The names of the columns.
pub(super) fn columns(file: &RowFile) -> Result<Vec<String>> {
    let reader = open(file, Arc::default())?;
    Ok(reader.metadata().file_metadata().schema().get_fields().iter().map(|field| field.name().to_string()).collect())
}

fn open(file: &RowFile, read: Arc<AtomicU64>) -> Result<SerializedFileReader<Source>> {
    let source = Source { file: file.systems.open(&file.path)?, size: file.size()?, read };
    caught(|| SerializedFileReader::new(source)).map_err(|error| wrong(&file.path, error))
}

fn wrong(path: &str, error: Error) -> Error {
    Error { message: format!("{path}: {}", error.message), ..error }
}

/// What the library returns. It panics at some damaged files and at types of columns that it does not read.
fn caught<T>(call: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(returned) => returned.map_err(|error| invalid!("{error}")),
        Err(_) => Err(invalid!("the Parquet file is damaged, or has a column of a type that cannot be read")),
    }
}

fn row(row: &parquet::record::Row) -> Result<Row> {
    let named = |(name, field): (&String, &Field)| match cell(field) {
        Ok(cell) => Ok((name.clone(), cell)),
        Err(error) => Err(invalid!("column '{name}': {}", error.message)),
    };
    row.get_column_iter().map(named).collect()
}

fn cell(field: &Field) -> Result<Cell> {
    Ok(match field {
        Field::Null => Cell::Missing,
        Field::Bool(value) => Cell::Int((*value).into()),
        Field::Byte(value) => Cell::Int((*value).into()),
        Field::Short(value) => Cell::Int((*value).into()),
        Field::Int(value) | Field::Date(value) => Cell::Int((*value).into()),
        Field::Long(value) | Field::TimestampMillis(value) | Field::TimestampMicros(value) => Cell::Int(*value),
        Field::UByte(value) => Cell::Int((*value).into()),
        Field::UShort(value) => Cell::Int((*value).into()),
        Field::UInt(value) => Cell::Int((*value).into()),
        Field::ULong(value) => {
            Cell::Int(i64::try_from(*value).map_err(|_| invalid!("{value} does not fit into 64 bits"))?)
        }
        Field::Float16(value) => Cell::Single(value.to_f32()),
        Field::Float(value) => Cell::Single(*value),
        Field::Double(value) => Cell::Float(*value),
        Field::Str(text) => Cell::Bytes(text.clone().into()),
        Field::Bytes(bytes) => Cell::Bytes(Bytes::copy_from_slice(bytes.data())),
        Field::ListInternal(list) => Cell::List(list.elements().iter().map(element).collect::<Result<_>>()?),
        Field::Group(_) => {
            return Err(invalid!("structures of several values cannot be stored; make each value a column"));
        }
        Field::MapInternal(_) => return Err(invalid!("maps cannot be stored; make each key a column")),
        Field::Decimal(_) => {
            return Err(invalid!("decimal numbers cannot be stored exactly; write them as text or floats"));
        }
        Field::TimeMillis(_) | Field::TimeMicros(_) => {
            return Err(invalid!("times of a day cannot be stored; write them as text or integers"));
        }
    })
}

/// An element of a list, which must be one value.
fn element(field: &Field) -> Result<Cell> {
    match cell(field)? {
        Cell::List(_) => Err(invalid!("lists of lists cannot be stored; write their elements one after another")),
        Cell::Missing => Err(invalid!("null in a list cannot be stored; leave it out or write another value")),
        cell => Ok(cell),
    }
}

pub(super) fn writer(file: &RowFile, schema: &Schema) -> Result<Writer> {
    schema.some_columns()?;
    Ok(Writer {
        sink: Some(FileSink(file.create()?)),
        file: None,
        schema: schema.clone(),
        texts: Vec::new(),
        rows: 0,
        columns: vec![Vec::new(); schema.columns.len()],
        path: file.path.clone(),
    })
}

pub(super) struct Writer {
    /// The file until its first rows are written.
    sink: Option<FileSink>,
    file: Option<SerializedFileWriter<FileSink>>,
    schema: Schema,
    /// The rows that are not written yet, by column.
    columns: Vec<Vec<Option<Typed>>>,
    /// The columns that are declared as text.
    texts: Vec<bool>,
    /// The number of rows that are written.
    rows: usize,
    path: String,
}

impl RowWriter for Writer {
    fn write(&mut self, row: Row) -> Result<()> {
        for (column, values) in self.columns.iter_mut().zip(self.schema.convert(row)?) {
            column.push(values);
        }
        let full = self.columns.first().is_some_and(|column| column.len() >= GROUP);
        if full { self.write_group() } else { Ok(()) }
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.write_group()?;
        let path = self.path.clone();
        let Some(file) = self.file.take() else { return Ok(()) };
        let sink = file.into_inner().map_err(|error| failed(&path, error))?;
        sink.0.close()
    }
}

fn failed(path: &str, error: ParquetError) -> Error {
    invalid!("cannot write {path}: {error}")
}

impl Writer {
    fn write_group(&mut self) -> Result<()> {
        if let Some(sink) = self.sink.take() {
            self.texts = self.columns.iter().map(|rows| rows.iter().flatten().all(is_utf8)).collect();
            let nodes = self.schema.columns.iter().zip(&self.texts).map(|(column, &is_text)| node(column, is_text));
            let nodes =
                nodes.collect::<parquet::errors::Result<Vec<_>>>().map_err(|error| failed(&self.path, error))?;
            let root = Node::group_type_builder("schema").with_fields(nodes).build();
            let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
            let begun = root.and_then(|root| SerializedFileWriter::new(sink, Arc::new(root), Arc::new(properties)));
            self.file = Some(begun.map_err(|error| failed(&self.path, error))?);
        }
        self.check_texts()?;
        self.rows += self.columns.first().map_or(0, Vec::len);
        let (path, columns) = (self.path.clone(), self.columns.iter_mut().map(std::mem::take).collect::<Vec<_>>());
        self.write_columns(columns).map_err(|error| failed(&path, error))
    }

    /// The columns are declared by the first group, and readers refuse text that is not UTF-8.
    fn check_texts(&self) -> Result<()> {
        for ((column, rows), _) in
            self.schema.columns.iter().zip(&self.columns).zip(&self.texts).filter(|(_, text)| **text)
        {
            if let Some(row) = rows.iter().position(|row| row.as_ref().is_some_and(|values| !is_utf8(values))) {
                let (name, row) = (&column.name, self.rows + row + 1);
                return Err(invalid!("column '{name}' was text up to row {row}, whose value is not UTF-8"));
            }
        }
        Ok(())
    }

    fn write_columns(&mut self, columns: Vec<Vec<Option<Typed>>>) -> parquet::errors::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut group = file.next_row_group()?;
        let mut rows = columns.into_iter().zip(&self.schema.columns);
        while let Some(mut writer) = group.next_column()? {
            let Some((values, column)) = rows.next() else { break };
            write_column(writer.untyped(), values, column.list)?;
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }
}

/// A column in the schema: an optional value, or an optional list of values.
fn node(column: &Column, is_text: bool) -> parquet::errors::Result<Arc<Node>> {
    let physical = match column.ty {
        Type::Int => Physical::INT64,
        Type::Float if column.wide => Physical::DOUBLE,
        Type::Float => Physical::FLOAT,
        Type::Text => Physical::BYTE_ARRAY,
    };
    let is_text = column.ty == Type::Text && is_text;
    let primitive = |name: &str, repetition| {
        let builder = Node::primitive_type_builder(name, physical).with_repetition(repetition);
        builder.with_logical_type(is_text.then_some(LogicalType::String)).build().map(Arc::new)
    };
    if !column.list {
        return primitive(&column.name, Repetition::OPTIONAL);
    }
    let element = primitive("element", Repetition::REQUIRED)?;
    let list =
        Node::group_type_builder("list").with_repetition(Repetition::REPEATED).with_fields(vec![element]).build()?;
    let outer = Node::group_type_builder(&column.name).with_repetition(Repetition::OPTIONAL);
    let outer = outer.with_logical_type(Some(LogicalType::List)).with_fields(vec![Arc::new(list)]).build()?;
    Ok(Arc::new(outer))
}

fn is_utf8(values: &Typed) -> bool {
    match values {
        Typed::Bytes(values) => values.iter().all(|value| std::str::from_utf8(value).is_ok()),
        _ => true,
    }
}

/// Writes the values with their levels: 0 is no value, 1 a value or an empty list, 2 an element of a list.
fn write_column(writer: &mut ColumnWriter<'_>, rows: Vec<Option<Typed>>, list: bool) -> parquet::errors::Result<()> {
    let (mut present, mut repeated) = (Vec::new(), Vec::new());
    let (mut ints, mut floats, mut doubles, mut texts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let count = row.as_ref().map_or(0, Typed::len);
        match &row {
            None => present.push(0),
            Some(_) if count == 0 => present.push(1),
            Some(_) => present.extend(std::iter::repeat_n(if list { 2 } else { 1 }, count)),
        }
        repeated.extend((0..count.max(1)).map(|place| i16::from(place > 0)));
        match row {
            Some(Typed::Ints(values)) => ints.extend(values),
            Some(Typed::Floats(values)) => floats.extend(values),
            Some(Typed::Doubles(values)) => doubles.extend(values),
            Some(Typed::Bytes(values)) => texts.extend(values.into_iter().map(ByteArray::from)),
            None => {}
        }
    }
    let (present, repeated) = (Some(&present[..]), list.then_some(&repeated[..]));
    match writer {
        ColumnWriter::Int64ColumnWriter(writer) => writer.write_batch(&ints, present, repeated)?,
        ColumnWriter::FloatColumnWriter(writer) => writer.write_batch(&floats, present, repeated)?,
        ColumnWriter::DoubleColumnWriter(writer) => writer.write_batch(&doubles, present, repeated)?,
        ColumnWriter::ByteArrayColumnWriter(writer) => writer.write_batch(&texts, present, repeated)?,
        _ => return Err(ParquetError::General("a column has a type that is never written".to_string())),
    };
    Ok(())
}
