//! Reading of record files.

use super::snappy::Unpacked;
use super::{Compression, HEADER};
use crate::crc;
use crate::fs::{FileStream, FileSystems, carried, carrying, data_loss};
use bytes::Bytes;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use status::{Error, Result};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// Reads the records of a file in order.
///
/// A file that ends within the twelve bytes of a record's header ends there without an error, as in TensorFlow: the
/// file is still being written.
pub struct RecordReader<R = Box<dyn Read + Send>> {
    source: R,
    offset: u64,
    /// TensorFlow's message for a compressed file that ends early.
    shortage: &'static str,
}

/// The size of reads. Records are read in such pieces too, so a wrong length does not allocate memory.
const PIECE: usize = 256 << 10;

impl RecordReader {
    /// Opens a record file.
    pub fn open(systems: &FileSystems, path: &str, compression: Compression) -> Result<RecordReader> {
        RecordReader::open_at(systems, path, compression, 0)
    }

    /// Opens a record file at an `offset` that another reader returned.
    pub fn open_at(systems: &FileSystems, path: &str, compression: Compression, offset: u64) -> Result<RecordReader> {
        let file = systems.open(path)?;
        let begin = if compression == Compression::None { offset } else { 0 };
        let file = BufReader::with_capacity(PIECE, FileStream::new(file, begin));
        let source: Box<dyn Read + Send> = match compression {
            Compression::None => Box::new(file),
            Compression::Zlib => Box::new(Inflated(ZlibDecoder::new(Headed { file, seen: false }))),
            Compression::Gzip => Box::new(Inflated(MultiGzDecoder::new(file))),
            Compression::Snappy => Box::new(Unpacked::new(file)),
        };
        if compression == Compression::None {
            return Ok(RecordReader { offset, ..RecordReader::new(source) });
        }
        let buffered: Box<dyn Read + Send> = Box::new(BufReader::with_capacity(PIECE, source));
        let mut reader = RecordReader::new(buffered);
        reader.shortage = "EOF reached";
        carried(io::copy(&mut (&mut reader.source).take(offset), &mut io::sink()))?;
        reader.offset = offset;
        Ok(reader)
    }
}

impl<R: Read> RecordReader<R> {
    /// Reads records from bytes in memory.
    pub fn new(source: R) -> RecordReader<R> {
        RecordReader { source, offset: 0, shortage: "Read less bytes than requested" }
    }

    /// The offset of the next record in the uncompressed data.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record; none at the end.
    pub fn read(&mut self) -> Result<Option<Bytes>> {
        let mut head = [0u8; HEADER];
        if self.fill(&mut head)? < HEADER {
            return Ok(None);
        }
        let (length, check) = head.split_at(8);
        if crc::masked(length) != number(check) {
            let hint = if self.offset == 0 { " (Is this even a TFRecord file?)" } else { "" };
            return Err(data_loss(format!("corrupted record at {}{hint}", self.offset)));
        }
        let length = u64::from_le_bytes(length.try_into().expect("8 bytes"));
        let data = self.bytes(length)?;
        let mut check = [0u8; 4];
        if self.fill(&mut check)? != 4 {
            return Err(self.truncated());
        }
        if crc::masked(&data) != number(&check) {
            return Err(data_loss(format!("corrupted record at {}", self.offset + HEADER as u64)));
        }
        self.offset += length + HEADER as u64 + 4;
        Ok(Some(data.into()))
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        while (data.len() as u64) < length {
            let begin = data.len();
            // The buffer doubles, so a large record is not copied for each piece.
            let piece = (begin.max(PIECE) as u64).min(length - begin as u64) as usize;
            data.resize(begin + piece, 0);
            if self.fill(&mut data[begin..])? != piece {
                return Err(self.truncated());
            }
        }
        Ok(data)
    }

    /// Reads until the buffer is full or the data ends.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut count = 0;
        while count < buffer.len() {
            match self.source.read(&mut buffer[count..]) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return carried(Err(error)),
            }
        }
        Ok(count)
    }

    fn truncated(&self) -> Error {
        data_loss(format!("truncated record at {}' failed with {}", self.offset, self.shortage))
    }
}

impl<R: Read> Iterator for RecordReader<R> {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Result<Bytes>> {
        self.read().transpose()
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("4 bytes"))
}

/// A decoder that ends where its file ends, and reports errors with zlib's messages.
struct Inflated<D>(D);

impl<D: Read> Read for Inflated<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
            Err(error) if error.get_ref().is_some_and(|inner| inner.is::<Error>()) => Err(error),
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            Err(error) => {
                Err(carrying(data_loss(format!("inflate() failed with error -3: {}", zlib_words(&error.to_string())))))
            }
            read => read,
        }
    }
}

fn zlib_words(text: &str) -> &str {
    match text {
        text if text.contains("header") => HEADER_CHECK,
        text if text.contains("checksum") => "incorrect data check",
        text => text,
    }
}

const HEADER_CHECK: &str = "incorrect header check";

/// A zlib file whose first two bytes are checked here: the decoder does not distinguish errors in them.
struct Headed<B> {
    file: B,
    seen: bool,
}

impl<B: BufRead> BufRead for Headed<B> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let seen = std::mem::replace(&mut self.seen, true);
        let bytes = self.file.fill_buf()?;
        if let (false, [method, flags, ..]) = (seen, bytes) {
            let check = u16::from_be_bytes([*method, *flags]);
            if method & 15 != 8 || !check.is_multiple_of(31) {
                return Err(io::Error::new(ErrorKind::InvalidData, HEADER_CHECK));
            }
        }
        Ok(bytes)
    }

    fn consume(&mut self, count: usize) {
        self.file.consume(count);
    }
}

impl<B: BufRead> Read for Headed<B> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill_buf()?;
        self.file.read(buffer)
    }
}
