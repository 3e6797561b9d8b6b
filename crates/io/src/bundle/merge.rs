//! Merging the parts of a checkpoint that several tasks wrote.

use super::present::{Present, write_empty};
use super::writer::write_index;
use super::{Bundle, Entry, Header, data_path, index_path};
use crate::fs::{FileSystems, path};
use status::{Result, internal, invalid};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

/// Options of a merge.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeOptions {
    /// Ignore parts that do not exist.
    pub allow_missing_files: bool,
    /// Delete the folders of parts that become empty.
    pub delete_old_dirs: bool,
}

/// Merges checkpoints into one named `target`: the data files are renamed and the indexes are merged. An existing
/// checkpoint of this name stays complete until then.
pub fn merge_bundles(systems: &FileSystems, parts: &[&str], target: &str, options: MergeOptions) -> Result<()> {
    let mut merge = Merge::default();
    for part in parts {
        if systems.exists(&index_path(part))? {
            merge.add(Bundle::open(systems, part)?)?;
        } else if !options.allow_missing_files {
            let found = systems.stat(part).map_or_else(|error| error.to_string(), |_| "OK".to_string());
            return Err(invalid!("allow_missing_files was set to false and {part} did not exist.{found}"));
        }
    }
    let Some(first) = merge.header else {
        return Err(invalid!("At least one prefix checkpoint file must exist, but none existed."));
    };
    systems.create_dir(path::dirname(target))?;
    let present = Present::of(systems, target)?;
    let files = merge.files.len() as u32;
    let shards = present.shards_beside(files);
    for (shard, file) in merge.files.iter().enumerate() {
        systems.rename(file, &data_path(target, shard as u32, shards), true)?;
    }
    write_empty(systems, target, files, shards)?;
    write_index(systems, target, &Header { shards, ..first }, &merge.entries)?;
    present.clear(systems, target);
    clean(systems, parts, target, options);
    Ok(())
}

/// Deletes the remains of the parts. The merged checkpoint is complete, so failures are ignored.
fn clean(systems: &FileSystems, parts: &[&str], target: &str, options: MergeOptions) {
    for part in parts.iter().filter(|part| **part != target) {
        let _ = systems.delete(&index_path(part));
    }
    if options.delete_old_dirs {
        for part in parts.iter().filter(|part| path::dirname(part) != path::dirname(target)) {
            let _ = systems.delete_dir(path::dirname(part));
        }
    }
}

#[derive(Default)]
struct Merge {
    /// The header of the first part.
    header: Option<Header>,
    entries: BTreeMap<Vec<u8>, Entry>,
    /// Data files with their new numbers.
    files: Vec<String>,
}

impl Merge {
    fn add(&mut self, part: Bundle) -> Result<()> {
        let header = part.header();
        let first = *self.header.get_or_insert(header);
        if first.big_endian != header.big_endian {
            return Err(invalid!("Merging bundles with conflicting endianness; inputs corrupted?"));
        }
        if (first.producer, first.min_consumer) != (header.producer, header.min_consumer) {
            return Err(invalid!(
                "Merging bundles with different format versions: merged {} vs. curr {}",
                first.producer,
                header.producer
            ));
        }
        let prefix = part.prefix().to_string();
        // Files without tensors are counted too, so that all files are moved.
        let numbers = self.files.len() as u32;
        self.files.extend((0..header.shards).map(|shard| data_path(&prefix, shard, header.shards)));
        for (key, mut entry) in part.keyed() {
            if entry.slices.is_empty() {
                if entry.shard >= header.shards {
                    return Err(internal!("{prefix} has {} files, not file {}", header.shards, entry.shard));
                }
                entry.shard += numbers;
            }
            self.insert(&prefix, key, entry)?;
        }
        Ok(())
    }

    /// Adds an entry. The slices of a tensor are collected in one entry.
    fn insert(&mut self, prefix: &str, key: Vec<u8>, entry: Entry) -> Result<()> {
        let name = String::from_utf8_lossy(&key).into_owned();
        let known = match self.entries.entry(key) {
            Slot::Vacant(slot) => {
                slot.insert(entry);
                return Ok(());
            }
            Slot::Occupied(slot) => slot.into_mut(),
        };
        if known.slices.is_empty() {
            return Err(invalid!("Duplicate tensor keyed by {name} encountered, when merging prefix: {prefix}"));
        }
        if entry.slices.is_empty() {
            return Err(internal!("Duplicate tensor keyed by {name}; attempting to merge in a non-slice bundle entry"));
        }
        if (known.dtype, &known.shape) != (entry.dtype, &entry.shape) {
            return Err(invalid!("Parts of {name} disagree about its type or shape, when merging prefix: {prefix}"));
        }
        known.slices.extend(entry.slices);
        Ok(())
    }
}
