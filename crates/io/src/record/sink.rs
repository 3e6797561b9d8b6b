//! A file that is compressed as it is written.

use super::Compression;
use super::snappy::Packer;
use crate::fs::{FileSink, carried};
use flate2::write::{GzEncoder, ZlibEncoder};
use status::Result;
use std::io::{self, Write};

/// Compresses what is written to a file.
pub(crate) struct CompressedSink(Sink);

enum Sink {
    Plain(FileSink),
    Zlib(ZlibEncoder<FileSink>),
    Gzip(GzEncoder<FileSink>),
    Snappy(Packer<FileSink>),
}

impl CompressedSink {
    pub fn new(file: FileSink, compression: Compression) -> CompressedSink {
        let level = flate2::Compression::default();
        CompressedSink(match compression {
            Compression::None => Sink::Plain(file),
            Compression::Zlib => Sink::Zlib(ZlibEncoder::new(file, level)),
            Compression::Gzip => Sink::Gzip(GzEncoder::new(file, level)),
            Compression::Snappy => Sink::Snappy(Packer::new(file)),
        })
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.0 {
            Sink::Plain(sink) => sink,
            Sink::Zlib(sink) => sink,
            Sink::Gzip(sink) => sink,
            Sink::Snappy(sink) => sink,
        }
    }

    /// Completes the file.
    pub fn close(self) -> Result<()> {
        let file = match self.0 {
            Sink::Plain(sink) => sink,
            Sink::Zlib(sink) => carried(sink.finish())?,
            Sink::Gzip(sink) => carried(sink.finish())?,
            Sink::Snappy(sink) => carried(sink.finish())?,
        };
        file.0.close()
    }
}

impl Write for CompressedSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}
