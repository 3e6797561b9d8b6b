//! Writing of record files.

use super::Compression;
use super::sink::CompressedSink;
use crate::crc;
use crate::fs::{FileSink, FileSystems, WritableFile, carried};
use status::Result;
use std::io::Write;

/// Writes records to a file, one after another. They are complete when it was closed.
pub struct RecordWriter {
    sink: CompressedSink,
    offset: u64,
}

impl RecordWriter {
    /// Creates a record file, or replaces the one with this name.
    pub fn create(systems: &FileSystems, path: &str, compression: Compression) -> Result<RecordWriter> {
        Ok(RecordWriter::new(systems.create(path)?, compression))
    }

    /// Appends to an uncompressed record file.
    pub fn append(systems: &FileSystems, path: &str) -> Result<RecordWriter> {
        Ok(RecordWriter::new(systems.append(path)?, Compression::None))
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
