//! Rows of named values, as files of several formats hold them: TFRecord files of examples, CSV, JSON lines and, with the
//! cargo feature `parquet`, Parquet.

mod csv_format;
mod format;
mod json_format;
#[cfg(feature = "parquet")]
mod parquet_format;
mod record_format;
mod schema;

pub use format::Format;
pub use schema::{Column, Schema, Type, Typed};

use crate::fs::{FileStream, FileSystems, Pending, WritableFile};
use crate::{Compression, RecordReader, RecordWriter};
use bytes::Bytes;
use status::{Error, Result};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A value as a file holds it.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Missing,
    /// Text whose type the format does not say, as in CSV, or digits beyond 64 bits.
    Untyped(String),
    /// An integer.
    Int(i64),
    /// A floating-point number of 64 bits.
    Float(f64),
    /// A floating-point number of 32 bits.
    Single(f32),
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
    /// An existing file, whose name or first bytes say its format and compression.
    pub fn open(systems: &FileSystems, path: &str) -> Result<RowFile> {
        let (format, compression) = Format::of_existing(systems, path)?;
        Ok(RowFile { systems: systems.clone(), path: path.to_string(), format, compression })
    }

    /// A file whose name says its format and compression.
    pub fn named(systems: &FileSystems, path: &str) -> Result<RowFile> {
        let (format, compression) = Format::of_file(path)?;
        Ok(RowFile { systems: systems.clone(), path: path.to_string(), format, compression })
    }

    /// Its rows.
    pub fn rows(&self) -> Result<Rows> {
        self.rows_counted(&Arc::default())
    }

    /// Its rows. What is read of the file is added to `read`, in bytes.
    pub fn rows_counted(&self, read: &Arc<AtomicU64>) -> Result<Rows> {
        Ok(match self.format {
            Format::TfRecord => Box::new(record_format::rows(self.records(read)?, &self.path)),
            Format::Csv => Box::new(csv_format::rows(self.stream(read)?, &self.path)?),
            Format::JsonLines => Box::new(json_format::rows(self.stream(read)?, &self.path)),
            Format::Parquet => self.parquet_rows(read)?,
        })
    }

    /// The records of a TFRecord file, whatever they contain. It is an error if the file was cut at any place but between
    /// two records. What is read of the file is added to `read`, in bytes.
    pub fn records(&self, read: &Arc<AtomicU64>) -> Result<RecordReader> {
        Ok(RecordReader::new(self.stream(read)?).complete())
    }

    /// The names of the columns, if the file says them outside its rows.
    pub fn columns(&self) -> Result<Vec<String>> {
        match self.format {
            Format::Csv => csv_format::columns(self.stream(&Arc::default())?, &self.path),
            Format::Parquet => self.parquet_columns(),
            Format::TfRecord | Format::JsonLines => Ok(Vec::new()),
        }
    }

    /// Writes records to the file. It gets its name when it is complete.
    pub fn record_writer(&self) -> Result<RecordWriter> {
        Ok(RecordWriter::new(self.create()?, self.compression))
    }

    /// Writes rows of a schema to the file. It gets its name when it is complete.
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
        Ok(crate::record::decoder_of(file, self.compression, 256 << 10, true))
    }

    /// A file that replaces the one with this name when it is closed. Devices are written directly.
    fn create(&self) -> Result<Box<dyn WritableFile>> {
        match self.systems.of(&self.path)?.is_device(&self.path) {
            true => self.systems.create(&self.path),
            false => Ok(Box::new(Pending::begin(&self.systems, &self.path)?)),
        }
    }

    /// Parquet compresses columns, not files.
    #[cfg(feature = "parquet")]
    fn uncompressed(&self) -> Result<()> {
        match self.compression {
            Compression::None => Ok(()),
            _ => Err(status::invalid!(
                "{}: Parquet files are not compressed as a whole; name it without .gz or .zz",
                self.path
            )),
        }
    }

    #[cfg(feature = "parquet")]
    fn parquet_rows(&self, read: &Arc<AtomicU64>) -> Result<Rows> {
        self.uncompressed()?;
        Ok(Box::new(parquet_format::rows(self, read.clone())?))
    }

    #[cfg(feature = "parquet")]
    fn parquet_columns(&self) -> Result<Vec<String>> {
        self.uncompressed()?;
        parquet_format::columns(self)
    }

    #[cfg(feature = "parquet")]
    fn parquet_writer(&self, schema: &Schema) -> Result<Box<dyn RowWriter>> {
        self.uncompressed()?;
        Ok(Box::new(parquet_format::writer(self, schema)?))
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet_rows(&self, _: &Arc<AtomicU64>) -> Result<Rows> {
        Err(no_parquet())
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet_columns(&self) -> Result<Vec<String>> {
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

/// The error of a row, with its number and what else is known of its place.
fn at(error: Error, path: &str, row: u64, place: &str) -> Error {
    Error { message: format!("{path}: row {row}{place}: {}", error.message), ..error }
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
