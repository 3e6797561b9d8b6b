//! Sequential reading of files, compressed or not, in large blocks that the pieces share.

use crate::Compression;
use crate::fs::{FileStream, FileSystems, carried};
use crate::record::decoder;
use bytes::Bytes;
use status::{Code, Error, Result, exhausted};
use std::io::{ErrorKind, Read};
use std::ops::RangeInclusive;
use tensor::Buffer;

/// Reads a file from its beginning to its end. The pieces it returns are slices of the blocks that it reads, so that
/// small pieces cost no allocation; a block is freed when its last piece is dropped.
pub struct InputStream<R = Box<dyn Read + Send>> {
    source: R,
    /// What has been read ahead.
    block: Bytes,
    offset: u64,
    block_size: usize,
    /// An error behind the bytes in `block`.
    failed: Option<Error>,
}

/// The sizes of blocks that callers can choose. Smaller ones cost time; larger ones gain none.
const BLOCK_SIZES: RangeInclusive<usize> = 4 << 10..=128 << 20;
/// The largest block of decompressed bytes, whose number is not known before.
const LARGEST_UNPACKED: usize = 4 << 20;
/// The size of blocks unless the caller chooses.
pub(crate) const BLOCK: usize = 256 << 10;
/// As `BLOCK`, for files that are read over a network.
const FAR_BLOCK: usize = 8 << 20;

impl InputStream {
    /// Opens a file. A block size of zero lets the stream choose.
    pub fn open(systems: &FileSystems, path: &str, compression: Compression, block_size: usize) -> Result<InputStream> {
        InputStream::open_at(systems, path, compression, block_size, 0)
    }

    /// Opens a file at an offset in the uncompressed bytes.
    pub fn open_at(
        systems: &FileSystems,
        path: &str,
        compression: Compression,
        block_size: usize,
        offset: u64,
    ) -> Result<InputStream> {
        let block_size = match block_size {
            0 if systems.of(path)?.is_far() => FAR_BLOCK,
            0 => BLOCK,
            size => size.clamp(*BLOCK_SIZES.start(), *BLOCK_SIZES.end()),
        };
        let file = systems.open(path)?;
        let size = file.size().unwrap_or(u64::MAX >> 1); // what has no size is an error of reading
        let fitting = block_size.min(usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1));
        if compression == Compression::None {
            let offset = offset.min(size);
            let source = Box::new(FileStream::new(file, offset));
            return Ok(InputStream { offset, ..InputStream::new(source, fitting) });
        }
        let source = decoder(FileStream::new(file, 0), compression, fitting);
        let mut stream = InputStream::new(source, block_size.min(LARGEST_UNPACKED));
        stream.skip(offset)?;
        Ok(stream)
    }
}

impl<R: Read> InputStream<R> {
    /// Reads what `source` returns.
    pub fn new(source: R, block_size: usize) -> InputStream<R> {
        InputStream { source, block: Bytes::new(), offset: 0, block_size: block_size.max(1), failed: None }
    }

    /// The offset of the next byte in the uncompressed data.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next bytes: `count`, or what is left.
    pub fn read(&mut self, count: usize) -> Result<Bytes> {
        self.fill(count)?;
        Ok(self.take(count.min(self.block.len())))
    }

    /// Skips bytes; false if there are fewer.
    pub fn skip(&mut self, mut count: u64) -> Result<bool> {
        while count > 0 {
            self.fill(1)?;
            let piece = count.min(self.block.len() as u64);
            if piece == 0 {
                return Ok(false);
            }
            self.take(piece as usize);
            count -= piece;
        }
        Ok(true)
    }

    /// What is left, at most `count` bytes, without taking it.
    pub fn peek(&mut self, count: usize) -> Result<Bytes> {
        self.fill(count)?;
        Ok(self.block.slice(..count.min(self.block.len())))
    }

    /// Everything that has been read ahead, at least `least` bytes if they are left, without taking it.
    pub fn peek_block(&mut self, least: usize) -> Result<Bytes> {
        self.fill(least)?;
        Ok(self.block.clone())
    }

    /// The next line, without its end and without any carriage returns; none at the end.
    pub fn read_line(&mut self) -> Result<Option<Bytes>> {
        let Some((line, ended)) = self.raw_line()? else { return Ok(None) };
        let line = match memchr::memchr(b'\r', &line) {
            Some(_) => line.iter().copied().filter(|&byte| byte != b'\r').collect(),
            None => line,
        };
        Ok((ended || !line.is_empty()).then_some(line))
    }

    /// The next bytes up to a line feed, without it, or up to the end; and whether there was a line feed.
    fn raw_line(&mut self) -> Result<Option<(Bytes, bool)>> {
        let mut searched = 0;
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.block[searched..]) {
                let line = self.take(searched + length);
                self.take(1);
                return Ok(Some((line, true)));
            }
            searched = self.block.len();
            self.fill(searched.saturating_add(1))?;
            if self.block.len() == searched {
                return Ok((searched > 0).then(|| (self.take(searched), false)));
            }
        }
    }

    /// Bytes that have been read ahead.
    fn take(&mut self, count: usize) -> Bytes {
        self.offset += count as u64;
        self.block.split_to(count)
    }

    /// Reads ahead until there are `count` bytes, or the source ends. An error is returned when nothing is left before
    /// it.
    fn fill(&mut self, count: usize) -> Result<()> {
        while self.block.len() < count && self.failed.is_none() && self.read_block(count)? > 0 {}
        match &self.failed {
            Some(error) if self.block.len() < count => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Reads one more block. The number of bytes at most doubles, so a wrong `count` does not allocate memory.
    fn read_block(&mut self, count: usize) -> Result<usize> {
        let left = self.block.len();
        let more = self.block_size.max(left.min(count - left));
        let size = if left <= self.block_size / 2 && more == self.block_size { more } else { left + more };
        let memory = || exhausted!("OOM when reading {size} bytes of a file");
        let mut buffer = Buffer::scratch(size).ok_or_else(memory)?;
        let bytes = buffer.bytes_mut().ok_or_else(memory)?;
        bytes[..left].copy_from_slice(&self.block);
        let read = self.read_into(&mut bytes[left..]);
        self.block = buffer.to_bytes().slice(..left + read);
        Ok(read)
    }

    /// Reads until the buffer is full, the source ends, or an error, which is kept.
    fn read_into(&mut self, buffer: &mut [u8]) -> usize {
        let mut count = 0;
        while count < buffer.len() {
            match self.source.read(&mut buffer[count..]) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = carried::<()>(Err(error)).err().or(Some(Error::new(Code::DataLoss, "")));
                    break;
                }
            }
        }
        count
    }
}
