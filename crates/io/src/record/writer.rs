//! Writing of record files.

use super::Compression;
use super::sink::CompressedSink;
use crate::crc;
use crate::fs::path::to_str;
use crate::fs::{FileSink, FileSystems, WritableFile, carried};
use status::Result;
use std::io::Write;
use std::path::Path;

/// Writes records to a file, one after another. They are complete when it was closed.
///
/// # Examples
///
/// ```
/// use flowgrid_io::{Compression, FileSystems, RecordReader, RecordWriter};
///
/// let path = std::env::temp_dir().join(format!("flowgrid-doc-writer-{}", std::process::id()));
/// let mut writer = RecordWriter::create_on(&FileSystems::local(), &path, Compression::Gzip)?;
/// writer.write(b"one")?;
/// writer.write_all(["two", "three"])?;
/// let mut reader = RecordReader::open_on(&FileSystems::local(), &path, Compression::Gzip)?;
/// assert_eq!(reader.read()?.as_deref(), Some(&b"one"[..]));
/// assert_eq!(reader.count(), 2);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), status::Error>(())
/// ```
pub struct RecordWriter {
    sink: CompressedSink,
    offset: u64,
}

impl RecordWriter {
    /// Creates an uncompressed record file on this machine, or replaces the one with this name.
    pub fn create(path: impl AsRef<Path>) -> Result<RecordWriter> {
        RecordWriter::create_on(&FileSystems::local(), path, Compression::None)
    }

    /// Creates a record file on some file systems, or replaces the one with this name.
    pub fn create_on(systems: &FileSystems, path: impl AsRef<Path>, compression: Compression) -> Result<RecordWriter> {
        Ok(RecordWriter::new(systems.create(to_str(path.as_ref())?)?, compression))
    }

    /// Appends to an uncompressed record file of some file systems.
    pub fn append_on(systems: &FileSystems, path: impl AsRef<Path>) -> Result<RecordWriter> {
        Ok(RecordWriter::new(systems.append(to_str(path.as_ref())?)?, Compression::None))
    }

    /// Writes records to this file.
    pub fn new(file: Box<dyn WritableFile>, compression: Compression) -> RecordWriter {
        RecordWriter { sink: CompressedSink::new(FileSink(file), compression), offset: 0 }
    }

    /// Writes a record.
    pub fn write(&mut self, record: &[u8]) -> Result<()> {
        let length = (record.len() as u64).to_le_bytes();
        let mut head = [0; super::HEADER];
        head[..8].copy_from_slice(&length);
        head[8..].copy_from_slice(&crc::masked(&length).to_le_bytes());
        let check = crc::masked(record).to_le_bytes();
        for part in [&head[..], record, &check] {
            carried(self.sink.write_all(part))?;
        }
        self.offset += (super::HEADER + record.len() + 4) as u64;
        Ok(())
    }

    /// Writes all these records and completes the file.
    pub fn write_all<R: AsRef<[u8]>>(mut self, records: impl IntoIterator<Item = R>) -> Result<()> {
        records.into_iter().try_for_each(|record| self.write(record.as_ref()))?;
        self.close()
    }

    /// The uncompressed size of the records of this writer.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Makes everything written so far visible to readers, where the file system supports this.
    pub fn flush(&mut self) -> Result<()> {
        carried(self.sink.flush())
    }

    /// Completes the file.
    pub fn close(self) -> Result<()> {
        self.sink.close()
    }
}
