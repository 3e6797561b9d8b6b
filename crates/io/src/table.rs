//! Sorted tables of keys and values in one file: LevelDB's format, as TensorFlow writes it.

use crate::crc;
use crate::file::{data_loss, read};
use bytes::{Buf, Bytes};
use status::Result;
use std::path::Path;

/// A table, whole in memory.
pub struct Table {
    bytes: Bytes,
    index: Bytes,
}

const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
const FOOTER: usize = 48;
/// Kind of compression and checksum, after every block.
const TRAILER: usize = 5;
/// A block that claims to be larger than this when unpacked is damaged.
const MAX_BLOCK: usize = 1 << 30;

impl Table {
    /// The table in the file at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Table> {
        Table::new(read(path.as_ref())?)
    }

    /// The table in these bytes.
    pub fn new(bytes: Bytes) -> Result<Table> {
        let Some(start) = bytes.len().checked_sub(FOOTER) else {
            return Err(data_loss("file is too short to be an sstable"));
        };
        let mut footer = bytes.slice(start..);
        if (&footer[FOOTER - 8..]).get_u64_le() != MAGIC {
            return Err(data_loss("not an sstable (bad magic number)"));
        }
        let _meta = handle(&mut footer)?;
        let index = handle(&mut footer)?;
        let index = block(&bytes, index)?;
        Ok(Table { bytes, index })
    }

    /// All entries, in the order of their keys.
    pub fn entries(&self) -> Result<Vec<(Bytes, Bytes)>> {
        let mut all = Vec::new();
        for (_, mut place) in entries(&self.index)? {
            all.extend(entries(&block(&self.bytes, handle(&mut place)?)?)?);
        }
        Ok(all)
    }
}

/// Where a block is: its offset and size.
fn handle(bytes: &mut Bytes) -> Result<(usize, usize)> {
    let (offset, size) = (varint(bytes)?, varint(bytes)?);
    match (usize::try_from(offset), usize::try_from(size)) {
        (Ok(offset), Ok(size)) => Ok((offset, size)),
        _ => Err(data_loss("bad block handle")),
    }
}

fn varint(bytes: &mut Bytes) -> Result<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        if !bytes.has_remaining() {
            break;
        }
        let byte = bytes.get_u8();
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(data_loss("bad number in an sstable"))
}

/// A block, checked and unpacked.
fn block(bytes: &Bytes, (offset, size): (usize, usize)) -> Result<Bytes> {
    let end = offset.checked_add(size).and_then(|end| end.checked_add(TRAILER)).filter(|&end| end <= bytes.len());
    let Some(end) = end else { return Err(data_loss("truncated block read")) };
    let (data, trailer) = (bytes.slice(offset..end - TRAILER), bytes.slice(end - TRAILER..end));
    let check = (&trailer[1..]).get_u32_le();
    if crc32c::crc32c(&bytes[offset..end - TRAILER + 1]) != crc::unmask(check) {
        return Err(data_loss("block checksum mismatch"));
    }
    match trailer[0] {
        0 => Ok(data),
        1 => {
            let damaged = |_| data_loss("corrupted compressed block contents");
            if snap::raw::decompress_len(&data).map_err(damaged)? > MAX_BLOCK {
                return Err(data_loss("corrupted compressed block contents"));
            }
            snap::raw::Decoder::new().decompress_vec(&data).map(Bytes::from).map_err(damaged)
        }
        kind => Err(data_loss(format!("bad block type {kind}"))),
    }
}

/// The entries of a block: each key shares its beginning with the one before.
fn entries(block: &Bytes) -> Result<Vec<(Bytes, Bytes)>> {
    let bad = || data_loss("bad entry in block");
    let restarts = block.len().checked_sub(4).map(|at| (&block[at..]).get_u32_le() as usize).ok_or_else(bad)?;
    let end = restarts.checked_mul(4).and_then(|n| (block.len() - 4).checked_sub(n)).ok_or_else(bad)?;
    let mut rest = block.slice(..end);
    let mut key: Vec<u8> = Vec::new();
    let mut found = Vec::new();
    while rest.has_remaining() {
        let mut length = || varint(&mut rest).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
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
