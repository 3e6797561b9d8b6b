//! Writing of tables.

use super::block::BlockBuilder;
use super::{FOOTER, MAGIC, TRAILER};
use crate::coding::put_varint;
use crate::fs::FileSystems;
use crate::fs::Pending;
use status::{Result, internal};

/// Writes a table, one entry after another in the order of keys. The file gets its name when the table is finished.
pub struct TableBuilder {
    file: Pending,
    offset: u64,
    block: BlockBuilder,
    index: BlockBuilder,
    last_key: Vec<u8>,
    /// The last finished block. Its index entry waits for a short key between its last key and the next key.
    waiting: Option<Vec<u8>>,
    count: usize,
}

/// The size at which a block is finished.
const BLOCK: usize = 256 << 10;
/// The distance between complete keys in a block (LevelDB's restart interval).
const RESTART: usize = 16;

impl TableBuilder {
    /// Starts a table that will be named `path`.
    pub fn create(systems: &FileSystems, path: &str) -> Result<TableBuilder> {
        Ok(TableBuilder {
            file: Pending::begin(systems, path)?,
            offset: 0,
            block: BlockBuilder::new(RESTART),
            index: BlockBuilder::new(1),
            last_key: Vec::new(),
            waiting: None,
            count: 0,
        })
    }

    /// Adds an entry. Its key must come after all keys before.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.count > 0 && key <= &self.last_key[..] {
            return Err(internal!("keys of a table must be added in order"));
        }
        // An entry much larger than a block gets a block of its own.
        if key.len() + value.len() >= 2 * BLOCK {
            self.end_block()?;
        }
        if let Some(handle) = self.waiting.take() {
            self.index.add(&separator(&self.last_key, key), &handle);
        }
        self.block.add(key, value);
        self.last_key = key.to_vec();
        self.count += 1;
        if self.block.size() >= BLOCK {
            self.end_block()?;
        }
        Ok(())
    }

    /// Writes the rest and gives the file its name. Returns its size.
    pub fn finish(mut self) -> Result<u64> {
        self.end_block()?;
        let filters = self.write(BlockBuilder::new(RESTART).take())?;
        if let Some(handle) = self.waiting.take() {
            self.index.add(&successor(&self.last_key), &handle);
        }
        let index = self.index.take();
        let mut footer = [filters, self.write(index)?].concat();
        footer.resize(FOOTER - 8, 0);
        footer.extend_from_slice(&MAGIC.to_le_bytes());
        self.file.append(&footer)?;
        self.file.finish()?;
        Ok(self.offset + FOOTER as u64)
    }

    fn end_block(&mut self) -> Result<()> {
        if !self.block.is_empty() {
            let block = self.block.take();
            self.waiting = Some(self.write(block)?);
        }
        Ok(())
    }

    /// Writes a block. Returns its encoded location.
    fn write(&mut self, block: Vec<u8>) -> Result<Vec<u8>> {
        let mut handle = Vec::new();
        put_varint(&mut handle, self.offset);
        put_varint(&mut handle, (block.len() - TRAILER) as u64);
        self.file.append(&block)?;
        self.offset += block.len() as u64;
        Ok(handle)
    }
}

/// A short key that is at least `low` and less than `high`.
fn separator(low: &[u8], high: &[u8]) -> Vec<u8> {
    let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    match (low.get(common), high.get(common)) {
        (Some(&a), Some(&b)) if a < 0xff && a + 1 < b => [&low[..common], &[a + 1]].concat(),
        _ => low.to_vec(),
    }
}

/// A short key that is at least `key`.
fn successor(key: &[u8]) -> Vec<u8> {
    match key.iter().position(|&byte| byte != 0xff) {
        Some(at) => [&key[..at], &[key[at] + 1]].concat(),
        None => key.to_vec(),
    }
}
