//! Reading plain tensors of checkpoints in pieces: the requested bytes are passed on, and the checksum covers all
//! bytes.

use super::{Entry, Watch};
use crate::crc;
use crate::fs::{RandomAccessFile, data_loss};
use bytes::Bytes;
use status::Result;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The number of bytes per read.
const PIECE: usize = 1 << 20;

/// The bytes of an entry, read once from start to end.
pub(super) struct Sequential {
    file: Arc<dyn RandomAccessFile>,
    entry: Entry,
    prefix: String,
    /// The bytes of the last read, and their offset in the entry.
    piece: Bytes,
    start: u64,
    crc: u32,
    watch: Option<Watch>,
}

impl Sequential {
    /// A reader at the start of an entry. The file is known to be long enough.
    pub fn new(file: Arc<dyn RandomAccessFile>, entry: &Entry, prefix: &str, watch: Option<Watch>) -> Sequential {
        let (entry, prefix) = (entry.clone(), prefix.to_string());
        Sequential { file, entry, prefix, piece: Bytes::new(), start: 0, crc: 0, watch }
    }

    /// Reads the next bytes; none at the end, where the checksum is verified.
    fn advance(&mut self) -> Result<Option<Bytes>> {
        self.start += self.piece.len() as u64;
        let left = self.entry.size - self.start;
        let mut piece = vec![0; left.min(PIECE as u64) as usize];
        self.file.read_exact_at(self.entry.offset + self.start, &mut piece)?;
        self.crc = crc32c::crc32c_append(self.crc, &piece);
        self.piece = piece.into();
        if let Some(watch) = &self.watch {
            watch(self.piece.len() as u64);
        }
        if left > 0 {
            return Ok(Some(self.piece.clone()));
        }
        check_sum(&self.entry, &self.prefix, self.crc).map(|()| None)
    }

    /// Copies the bytes from `offset` on, which follow those of the previous call.
    pub fn copy(&mut self, mut offset: u64, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            let end = self.start + self.piece.len() as u64;
            if offset >= end {
                if self.advance()?.is_none() {
                    return Err(data_loss("a tensor ends before its last element"));
                }
                continue;
            }
            let here = &self.piece[(offset - self.start) as usize..];
            let count = here.len().min(out.len());
            out[..count].copy_from_slice(&here[..count]);
            (offset, out) = (offset + count as u64, &mut out[count..]);
        }
        Ok(())
    }

    /// Reads the remaining bytes, for the checksum.
    pub fn finish(mut self) -> Result<()> {
        while self.advance()?.is_some() {}
        Ok(())
    }
}

/// An error if the bytes have another checksum than the entry.
pub(super) fn check_sum(entry: &Entry, prefix: &str, calculated: u32) -> Result<()> {
    let stored = crc::unmask(entry.crc);
    if calculated == stored {
        return Ok(());
    }
    Err(data_loss(format!(
        "TensorBundle at {prefix} shard {} ({} bytes): Checksum does not match: stored {stored:08} vs. calculated on the \
         restored bytes {calculated}",
        entry.shard, entry.size
    )))
}

/// The bytes of a tensor, or of a slice of it, in pieces.
pub struct TensorPieces {
    /// The entries with the requested part of each, in order.
    parts: VecDeque<(Sequential, Range<u64>)>,
}

impl TensorPieces {
    pub(super) fn new(parts: impl Iterator<Item = (Sequential, Range<u64>)>) -> TensorPieces {
        TensorPieces { parts: parts.collect() }
    }

    /// The next bytes; none at the end, where all checksums were verified.
    pub fn next_piece(&mut self) -> Result<Option<Bytes>> {
        while let Some((entry, wanted)) = self.parts.front_mut() {
            let Some(piece) = entry.advance()? else {
                self.parts.pop_front();
                continue;
            };
            let (start, end) = (entry.start, entry.start + piece.len() as u64);
            let common = wanted.start.max(start)..wanted.end.min(end);
            if common.start < common.end {
                return Ok(Some(piece.slice((common.start - start) as usize..(common.end - start) as usize)));
            }
        }
        Ok(None)
    }
}
