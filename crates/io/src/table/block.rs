//! Blocks of a table: sorted entries whose keys omit the prefix that they share with the key before.

use super::TRAILER;
use crate::coding::{put_varint, read_varint};
use crate::crc;
use crate::fs::data_loss;
use bytes::{Buf, Bytes};
use status::Result;

/// Keys and values of a block, in order.
pub(super) type Entries = Vec<(Bytes, Bytes)>;

/// The highest compression ratio of snappy.
const MOST_EXPANSION: usize = 64;

/// A block from the file, verified and decompressed.
pub(super) fn unpack(stored: Bytes) -> Result<Bytes> {
    let size = stored.len().checked_sub(TRAILER).ok_or_else(|| data_loss("truncated block read"))?;
    let check = (&stored[size + 1..]).get_u32_le();
    if crc32c::crc32c(&stored[..size + 1]) != crc::unmask(check) {
        return Err(data_loss("block checksum mismatch"));
    }
    let data = stored.slice(..size);
    match stored[size] {
        0 => Ok(data),
        1 => {
            let damaged = || data_loss("corrupted compressed block contents");
            let length = snap::raw::decompress_len(&data).map_err(|_| damaged())?;
            if length > data.len().saturating_mul(MOST_EXPANSION) {
                return Err(damaged());
            }
            snap::raw::Decoder::new().decompress_vec(&data).map(Bytes::from).map_err(|_| damaged())
        }
        kind => Err(data_loss(format!("bad block type {kind}"))),
    }
}

/// Iterates over the entries of a block and completes their keys.
pub(super) fn entries(block: &Bytes) -> Result<Entries> {
    let bad = || data_loss("bad entry in block");
    let restarts = block.len().checked_sub(4).map(|at| (&block[at..]).get_u32_le() as usize).ok_or_else(bad)?;
    let end = restarts.checked_mul(4).and_then(|n| (block.len() - 4).checked_sub(n)).ok_or_else(bad)?;
    let mut rest = block.slice(..end);
    let mut key: Vec<u8> = Vec::new();
    let mut found = Vec::new();
    while rest.has_remaining() {
        let mut length = || read_varint(&mut rest).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let (shared, fresh, value) = (length()?, length()?, length()?);
        if shared > key.len() || fresh.saturating_add(value) > rest.len() {
            return Err(bad());
        }
        key.truncate(shared);
        key.extend_from_slice(&rest.split_to(fresh));
        found.push((Bytes::copy_from_slice(&key), rest.split_to(value)));
    }
    Ok(found)
}

/// A block that is being built.
pub(super) struct BlockBuilder {
    /// The distance between restart points: entries with a complete key, where a search can start.
    interval: usize,
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    since_restart: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    /// An empty block.
    pub fn new(interval: usize) -> BlockBuilder {
        BlockBuilder { interval, bytes: Vec::new(), restarts: vec![0], since_restart: 0, last_key: Vec::new() }
    }

    /// Adds an entry. Keys must be in order.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut shared = 0;
        if self.since_restart < self.interval {
            shared = self.last_key.iter().zip(key).take_while(|(a, b)| a == b).count();
        } else {
            self.restarts.push(self.bytes.len() as u32);
            self.since_restart = 0;
        }
        for length in [shared, key.len() - shared, value.len()] {
            put_varint(&mut self.bytes, length as u64);
        }
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        self.since_restart += 1;
    }

    /// The current size of the block.
    pub fn size(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + 4
    }

    /// True if the block has no entries.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the block as it is stored, and clears the builder.
    pub fn take(&mut self) -> Vec<u8> {
        let fresh = BlockBuilder::new(self.interval);
        let BlockBuilder { mut bytes, restarts, .. } = std::mem::replace(self, fresh);
        for restart in &restarts {
            bytes.extend_from_slice(&restart.to_le_bytes());
        }
        bytes.extend_from_slice(&(restarts.len() as u32).to_le_bytes());
        bytes.push(0); // not compressed: TensorFlow before 1.1 reads nothing else
        let check = crc::masked(&bytes);
        bytes.extend_from_slice(&check.to_le_bytes());
        bytes
    }
}
