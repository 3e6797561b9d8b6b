//! The snappy compression of record files: blocks, each after its length.

use crate::fs::{carrying, data_loss};
use std::io::{self, ErrorKind, Read, Write};

/// The size of a block. TensorFlow does not read blocks above 256 KiB.
const BLOCK: usize = 128 << 10;
/// The highest compression ratio of snappy.
const MOST_TIMES: usize = 64;

/// Reads compressed blocks.
pub(super) struct Unpacked<R> {
    source: R,
    block: Vec<u8>,
    position: usize,
}

impl<R: Read> Unpacked<R> {
    pub fn new(source: R) -> Unpacked<R> {
        Unpacked { source, block: Vec::new(), position: 0 }
    }

    /// Reads the next block. Returns false at the end.
    fn next(&mut self) -> io::Result<bool> {
        let mut length = [0; 4];
        match self.source.read_exact(&mut length) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        let length = u32::from_be_bytes(length) as usize;
        let mut packed = Vec::new();
        // A wrong length does not allocate memory.
        (&mut self.source).take(length as u64).read_to_end(&mut packed)?;
        if packed.len() < length {
            let message = format!("Failed to read {length} bytes from file. Possible data corruption.");
            return Err(carrying(data_loss(message)));
        }
        let size = snap::raw::decompress_len(&packed).ok().filter(|&size| size <= length.saturating_mul(MOST_TIMES));
        let unpacked = size.and_then(|_| snap::raw::Decoder::new().decompress_vec(&packed).ok());
        self.block = unpacked.ok_or_else(|| carrying(data_loss("Snappy_Uncompress failed.")))?;
        self.position = 0;
        Ok(true)
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.position == self.block.len() {
            if !self.next()? {
                return Ok(0);
            }
        }
        let count = buffer.len().min(self.block.len() - self.position);
        buffer[..count].copy_from_slice(&self.block[self.position..self.position + count]);
        self.position += count;
        Ok(count)
    }
}

/// Writes compressed blocks.
pub(super) struct Packer<W> {
    sink: W,
    block: Vec<u8>,
}

impl<W: Write> Packer<W> {
    pub fn new(sink: W) -> Packer<W> {
        Packer { sink, block: Vec::with_capacity(BLOCK) }
    }

    fn pack(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let packed = snap::raw::Encoder::new().compress_vec(&self.block)?;
        self.block.clear();
        self.sink.write_all(&(packed.len() as u32).to_be_bytes())?;
        self.sink.write_all(&packed)
    }

    /// Writes the rest. Returns the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.pack()?;
        Ok(self.sink)
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.block.len() == BLOCK {
            self.pack()?;
        }
        let count = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pack()?;
        self.sink.flush()
    }
}
