//! Writing of record files.

use super::Compression;
use super::snappy::Packer;
use crate::crc;
use crate::fs::{FileSink, FileSystems, WritableFile, carried};
use flate2::write::{GzEncoder, ZlibEncoder};
use status::Result;
use std::io::Write;

/// Writes records to a file, one after another. They are complete when it was closed.
pub struct RecordWriter {
    sink: Sink,
    offset: u64,
}

enum Sink {
    Plain(FileSink),
    Zlib(ZlibEncoder<FileSink>),
    Gzip(GzEncoder<FileSink>),
    Snappy(Packer<FileSink>),
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
        let (file, level) = (FileSink(file), flate2::Compression::default());
        let sink = match compression {
            Compression::None => Sink::Plain(file),
            Compression::Zlib => Sink::Zlib(ZlibEncoder::new(file, level)),
            Compression::Gzip => Sink::Gzip(GzEncoder::new(file, level)),
            Compression::Snappy => Sink::Snappy(Packer::new(file)),
        };
        RecordWriter { sink, offset: 0 }
    }

    /// Writes a record.
    pub fn write(&mut self, record: &[u8]) -> Result<()> {
        let length = (record.len() as u64).to_le_bytes();
        let mut head = [0; super::HEADER];
        head[..8].copy_from_slice(&length);
        head[8..].copy_from_slice(&crc::masked(&length).to_le_bytes());
        let check = crc::masked(record).to_le_bytes();
        let sink: &mut dyn Write = match &mut self.sink {
            Sink::Plain(sink) => sink,
            Sink::Zlib(sink) => sink,
            Sink::Gzip(sink) => sink,
            Sink::Snappy(sink) => sink,
        };
        for part in [&head[..], record, &check] {
            carried(sink.write_all(part))?;
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
        carried(match &mut self.sink {
            Sink::Plain(sink) => sink.flush(),
            Sink::Zlib(sink) => sink.flush(),
            Sink::Gzip(sink) => sink.flush(),
            Sink::Snappy(sink) => sink.flush(),
        })
    }

    /// Completes the file.
    pub fn close(self) -> Result<()> {
        let file = match self.sink {
            Sink::Plain(sink) => sink,
            Sink::Zlib(sink) => carried(sink.finish())?,
            Sink::Gzip(sink) => carried(sink.finish())?,
            Sink::Snappy(sink) => carried(sink.finish())?,
        };
        file.0.close()
    }
}
