//! Rows of named values, as files of several formats hold them: TFRecord files of examples, CSV, JSON lines and, with the
//! cargo feature `parquet`, Parquet.

mod csv_format;
mod json_format;
#[cfg(feature = "parquet")]
mod parquet_format;
mod record_format;
mod schema;

pub use schema::{Column, Schema, Type};

use crate::fs::path::basename;
use crate::fs::{FileStream, FileSystems};
use crate::{Compression, RecordReader};
use bytes::Bytes;
use status::{Result, invalid};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A value as a file holds it.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Missing,
    /// Text whose type the format does not say, as in CSV.
    Untyped(String),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Text or bytes.
    Bytes(Bytes),
    /// Several values.
    List(Vec<Cell>),
}

/// The values of a row with the names of their columns.
pub type Row = Vec<(String, Cell)>;

/// Rows of a file, in order.
pub type Rows = Box<dyn Iterator<Item = Result<Row>> + Send>;

/// Writes rows to a file.
pub trait RowWriter {
    /// Writes a row, whose values are converted to the types of the schema.
    fn write(&mut self, row: Row) -> Result<()>;

    /// Completes the file.
    fn close(self: Box<Self>) -> Result<()>;
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TFRecord files of Example messages.
    TfRecord,
    /// Comma-separated values, with the names of the columns in the first line.
    Csv,
    /// A JSON object on each line.
    JsonLines,
    /// Parquet.
    Parquet,
}

impl Format {
    /// The format with this name.
    pub fn from_name(name: &str) -> Result<Format> {
        match name {
            "tfrecord" | "tfrecords" | "record" => Ok(Format::TfRecord),
            "csv" => Ok(Format::Csv),
            "jsonl" | "json" | "ndjson" => Ok(Format::JsonLines),
            "parquet" => Ok(Format::Parquet),
            _ => Err(invalid!("unknown format '{name}'; expected tfrecord, csv, jsonl or parquet")),
        }
    }

    /// The format and compression that the name of a file suggests: `train.csv.gz`.
    pub fn of_file(path: &str) -> Result<(Format, Compression)> {
        let name = basename(path);
        let (name, compression) = match name.rsplit_once('.') {
            Some((rest, "gz" | "gzip")) => (rest, Compression::Gzip),
            Some((rest, "zz" | "zlib")) => (rest, Compression::Zlib),
            _ => (name, Compression::None),
        };
        // Shards are named `train.tfrecord-00000-of-00010`.
        let name = name.split("-0").next().unwrap_or(name);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let format = Format::from_name(extension).map_err(|_| {
            invalid!("the name of {path} does not say its format; expected .tfrecord, .csv, .jsonl or .parquet")
        })?;
        Ok((format, compression))
    }
}

/// A file of rows.
#[derive(Clone)]
pub struct RowFile {
    /// Where it is.
    pub systems: FileSystems,
    /// Its name.
    pub path: String,
    /// Its format.
    pub format: Format,
    /// Its compression.
    pub compression: Compression,
}

impl RowFile {
    /// A file whose name says its format and compression.
    pub fn named(systems: &FileSystems, path: &str) -> Result<RowFile> {
        let (format, compression) = Format::of_file(path)?;
        Ok(RowFile { systems: systems.clone(), path: path.to_string(), format, compression })
    }

    /// Its rows, and the number of bytes of the file that have been read.
    pub fn rows(&self) -> Result<(Rows, Arc<AtomicU64>)> {
        let read = Arc::<AtomicU64>::default();
        let rows: Rows = match self.format {
            Format::TfRecord => Box::new(record_format::rows(RecordReader::new(self.stream(&read)?), &self.path)),
            Format::Csv => Box::new(csv_format::rows(self.stream(&read)?, &self.path)?),
            Format::JsonLines => Box::new(json_format::rows(self.stream(&read)?, &self.path)),
            Format::Parquet => self.parquet_rows(&read)?,
        };
        Ok((rows, read))
    }

    /// Writes rows of a schema to the file.
    pub fn writer(&self, schema: &Schema) -> Result<Box<dyn RowWriter>> {
        Ok(match self.format {
            Format::TfRecord => Box::new(record_format::writer(self, schema)?),
            Format::Csv => Box::new(csv_format::writer(self, schema)?),
            Format::JsonLines => Box::new(json_format::writer(self, schema)?),
            Format::Parquet => self.parquet_writer(schema)?,
        })
    }

    /// The uncompressed bytes of the file. `read` counts the bytes of the file itself.
    fn stream(&self, read: &Arc<AtomicU64>) -> Result<Box<dyn Read + Send>> {
        let file = Counted { file: FileStream::new(self.systems.open(&self.path)?, 0), read: read.clone() };
        Ok(crate::record::decoder(file, self.compression, 256 << 10))
    }

    #[cfg(feature = "parquet")]
    fn parquet_rows(&self, read: &Arc<AtomicU64>) -> Result<Rows> {
        Ok(Box::new(parquet_format::rows(self.systems.open(&self.path)?, self.size()?, read.clone(), &self.path)?))
    }

    #[cfg(feature = "parquet")]
    fn parquet_writer(&self, schema: &Schema) -> Result<Box<dyn RowWriter>> {
        Ok(Box::new(parquet_format::writer(self, schema)?))
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet_rows(&self, _: &Arc<AtomicU64>) -> Result<Rows> {
        Err(no_parquet())
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet_writer(&self, _: &Schema) -> Result<Box<dyn RowWriter>> {
        Err(no_parquet())
    }

    /// The size of the file in bytes.
    pub fn size(&self) -> Result<u64> {
        Ok(self.systems.stat(&self.path)?.size)
    }
}

#[cfg(not(feature = "parquet"))]
fn no_parquet() -> status::Error {
    status::unimplemented_op!("this program was built without Parquet; build it with --features parquet")
}

/// Counts what is read.
struct Counted {
    file: FileStream,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
