//! Reading of tables, one block at a time.

use super::block::{self, Entries};
use super::{FOOTER, MAGIC, TRAILER};
use crate::coding::read_varint;
use crate::fs::{FileSystems, RandomAccessFile, data_loss};
use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use status::Result;
use std::sync::Arc;

/// An open table. Only its index and the last block that was read are in memory.
pub struct Table {
    file: Arc<dyn RandomAccessFile>,
    size: u64,
    /// For each block a key that is at least as large as all of its keys, and the location of the block.
    index: Vec<(Bytes, Handle)>,
    recent: Mutex<Option<(Handle, Arc<Entries>)>>,
}

/// The location of a block, without its trailer.
#[derive(Clone, Copy, PartialEq)]
struct Handle {
    offset: u64,
    size: u64,
}

impl Table {
    /// Opens the table in a file.
    pub fn open(systems: &FileSystems, path: &str) -> Result<Table> {
        Table::new(systems.open(path)?)
    }

    /// Opens a table whose file is already open.
    pub fn new(file: Arc<dyn RandomAccessFile>) -> Result<Table> {
        let size = file.size()?;
        let Some(start) = size.checked_sub(FOOTER as u64) else {
            return Err(data_loss("file is too short to be an sstable"));
        };
        let mut footer = vec![0; FOOTER];
        file.read_exact_at(start, &mut footer)?;
        let mut footer = Bytes::from(footer);
        if (&footer[FOOTER - 8..]).get_u64_le() != MAGIC {
            return Err(data_loss("not an sstable (bad magic number)"));
        }
        let _filters = handle(&mut footer)?;
        let index = handle(&mut footer)?;
        let mut table = Table { file, size, index: Vec::new(), recent: Mutex::new(None) };
        for (key, mut place) in block::entries(&table.block(index)?)? {
            table.index.push((key, handle(&mut place)?));
        }
        Ok(table)
    }

    /// The value of a key, if it exists.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let at = self.index.partition_point(|(last, _)| &last[..] < key);
        let Some(&(_, handle)) = self.index.get(at) else { return Ok(None) };
        let entries = self.entries_of(handle)?;
        let found = entries.binary_search_by(|(known, _)| known[..].cmp(key));
        Ok(found.ok().map(|at| entries[at].1.clone()))
    }

    /// All entries, in the order of their keys.
    pub fn entries(&self) -> Result<Vec<(Bytes, Bytes)>> {
        let mut all = Vec::new();
        for &(_, handle) in &self.index {
            all.extend(block::entries(&self.block(handle)?)?);
        }
        Ok(all)
    }

    fn entries_of(&self, handle: Handle) -> Result<Arc<Entries>> {
        let recent = self.recent.lock().clone();
        if let Some((known, entries)) = recent.filter(|(known, _)| *known == handle) {
            debug_assert!(known == handle);
            return Ok(entries);
        }
        let entries = Arc::new(block::entries(&self.block(handle)?)?);
        *self.recent.lock() = Some((handle, entries.clone()));
        Ok(entries)
    }

    fn block(&self, Handle { offset, size }: Handle) -> Result<Bytes> {
        let stored = size.checked_add(TRAILER as u64);
        let end = stored.and_then(|stored| stored.checked_add(offset)).filter(|&end| end <= self.size);
        if end.is_none() {
            return Err(data_loss("truncated block read"));
        }
        let mut bytes = vec![0; size as usize + TRAILER];
        self.file.read_exact_at(offset, &mut bytes).map_err(|_| data_loss("truncated block read"))?;
        block::unpack(bytes.into())
    }
}

fn handle(bytes: &mut Bytes) -> Result<Handle> {
    let bad = |_| data_loss("bad block handle");
    Ok(Handle { offset: read_varint(bytes).map_err(bad)?, size: read_varint(bytes).map_err(bad)? })
}
