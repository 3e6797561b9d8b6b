//! Reading of record files.

use super::snappy::Unpacked;
use super::{Compression, HEADER};
use crate::crc;
use crate::fs::path::to_str;
use crate::fs::{FileSystems, carrying, data_loss};
use crate::input::{BLOCK, InputStream};
use bytes::Bytes;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use status::{Error, Result};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// Reads the records of a file in order.
///
/// A file that ends within the twelve bytes of a record's header ends there without an error, as in TensorFlow: the
/// file is still being written.
///
/// # Examples
///
/// ```
/// use flowgrid_io::{RecordReader, RecordWriter};
///
/// let path = std::env::temp_dir().join(format!("flowgrid-doc-reader-{}", std::process::id()));
/// RecordWriter::create(&path)?.write_all(["one", "two"])?;
/// let records: Vec<_> = RecordReader::open(&path)?.collect::<Result<_, _>>()?;
/// assert_eq!(records, ["one", "two"]);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), status::Error>(())
/// ```
pub struct RecordReader<R = Box<dyn Read + Send>> {
    stream: InputStream<R>,
    offset: u64,
    /// TensorFlow's message for a compressed file that ends early.
    shortage: &'static str,
    /// True if the file is not being written any more.
    complete: bool,
}

impl RecordReader {
    /// Opens an uncompressed record file of this machine.
    pub fn open(path: impl AsRef<Path>) -> Result<RecordReader> {
        RecordReader::open_on(&FileSystems::local(), path, Compression::None)
    }

    /// Opens a record file of some file systems.
    pub fn open_on(systems: &FileSystems, path: impl AsRef<Path>, compression: Compression) -> Result<RecordReader> {
        RecordReader::open_at(systems, to_str(path.as_ref())?, compression, 0)
    }

    /// Opens a record file at an `offset` that another reader returned.
    pub fn open_at(systems: &FileSystems, path: &str, compression: Compression, offset: u64) -> Result<RecordReader> {
        RecordReader::open_with(systems, path, compression, 0, offset)
    }

    /// As `open_at`, with the size of the blocks in which the file is read; zero lets the reader choose.
    pub fn open_with(
        systems: &FileSystems,
        path: &str,
        compression: Compression,
        block_size: usize,
        offset: u64,
    ) -> Result<RecordReader> {
        let stream = InputStream::open_at(systems, path, compression, block_size, offset)?;
        let shortage = if compression == Compression::None { SHORTAGE } else { "EOF reached" };
        Ok(RecordReader { stream, offset, shortage, complete: false })
    }
}

const SHORTAGE: &str = "Read less bytes than requested";
const ENDS_EARLY: &str = "the compressed data ends too early";

/// Decompresses a file that is read in blocks of a size. Compressed data that ends too early is the end, as in TensorFlow.
pub(crate) fn decoder(
    file: impl Read + Send + 'static,
    compression: Compression,
    block_size: usize,
) -> Box<dyn Read + Send> {
    decoder_of(file, compression, block_size, false)
}

/// As `decoder`, for a `complete` file: compressed data that ends too early is an error.
pub(crate) fn decoder_of(
    file: impl Read + Send + 'static,
    compression: Compression,
    block_size: usize,
    complete: bool,
) -> Box<dyn Read + Send> {
    let file = BufReader::with_capacity(block_size, file);
    match compression {
        Compression::None => Box::new(file),
        Compression::Zlib => Box::new(Inflated { decoder: ZlibDecoder::new(Headed { file, seen: false }), complete }),
        Compression::Gzip => Box::new(Inflated { decoder: MultiGzDecoder::new(file), complete }),
        Compression::Snappy => Box::new(Unpacked::new(file)),
    }
}

impl<R: Read> RecordReader<R> {
    /// Reads records from bytes in memory.
    pub fn new(source: R) -> RecordReader<R> {
        RecordReader { stream: InputStream::new(source, BLOCK), offset: 0, shortage: SHORTAGE, complete: false }
    }

    /// The same for a file that is not being written any more: one that ends within a header is an error.
    pub fn complete(self) -> RecordReader<R> {
        RecordReader { complete: true, ..self }
    }

    /// The offset of the next record in the uncompressed data.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record; none at the end.
    pub fn read(&mut self) -> Result<Option<Bytes>> {
        let head = self.stream.read(HEADER).map_err(|error| self.ended(error))?;
        if head.len() < HEADER {
            return self.end(head.len());
        }
        let (length, check) = head.split_at(8);
        if crc::masked(length) != number(check) {
            let hint = if self.offset == 0 { " (Is this even a TFRecord file?)" } else { "" };
            return Err(data_loss(format!("corrupted record at {}{hint}", self.offset)));
        }
        let length = u64::from_le_bytes(length.try_into().expect("8 bytes"));
        let size = usize::try_from(length).ok().and_then(|length| length.checked_add(4));
        let data = self.stream.read(size.ok_or_else(|| self.truncated())?);
        let mut data = data.map_err(|error| self.ended(error))?;
        if Some(data.len()) != size {
            return Err(self.truncated());
        }
        let check = data.split_off(length as usize);
        if crc::masked(&data) != number(&check) {
            return Err(data_loss(format!("corrupted record at {}", self.offset + HEADER as u64)));
        }
        self.offset += length + HEADER as u64 + 4;
        Ok(Some(data))
    }

    /// What it means that this many bytes of a header are left.
    fn end(&self, left: usize) -> Result<Option<Bytes>> {
        match (self.complete, left) {
            (false, _) | (_, 0) => Ok(None),
            _ => Err(data_loss(format!(
                "truncated record at {}: the header has 12 bytes, and the file ends after {left}",
                self.offset
            ))),
        }
    }

    /// The error of compressed data that ends too early, with the offset of the record.
    fn ended(&self, error: Error) -> Error {
        match error.message == ENDS_EARLY {
            true => data_loss(format!("truncated record at {}: {ENDS_EARLY}", self.offset)),
            false => error,
        }
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

/// A decoder that ends where its file ends unless that must be `complete`, and reports errors with zlib's messages.
struct Inflated<D> {
    decoder: D,
    complete: bool,
}

impl<D: Read> Read for Inflated<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.decoder.read(buffer) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof && self.complete => {
                Err(carrying(data_loss(ENDS_EARLY)))
            }
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
