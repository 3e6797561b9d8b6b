//! An existing checkpoint that is overwritten by one of the same name.
//!
//! Two files cannot be replaced atomically together, so the new data files must not have the names of the existing
//! ones. The names contain the number of data files, so the new checkpoint gets another number of them, with one
//! empty file if necessary. The existing checkpoint stays complete until one rename replaces the index, which
//! contains the number.

use super::{data_path, index_path, wire};
use crate::Table;
use crate::fs::FileSystems;
use status::{Code, Result};

/// The number of data files of the existing checkpoint; none if there is no readable one.
pub(super) struct Present(Option<u32>);

impl Present {
    /// Finds the existing checkpoint of a name.
    pub fn of(systems: &FileSystems, prefix: &str) -> Result<Present> {
        let header = Table::open(systems, &index_path(prefix)).and_then(|table| table.get(b""));
        match header.and_then(|header| wire::decode_header(header.unwrap_or_default())) {
            Ok(header) => Ok(Present(Some(header.shards))),
            Err(error) if is_unreadable(error.code) => Ok(Present(None)),
            // If the index cannot be read, this is decided when it is replaced.
            Err(error) => Err(error),
        }
    }

    /// The number of data files of a new checkpoint with `files` files.
    pub fn shards_beside(&self, files: u32) -> u32 {
        files + u32::from(self.0 == Some(files))
    }

    /// Deletes the old data files, which the index no longer mentions. Failures are harmless and ignored.
    pub fn clear(self, systems: &FileSystems, prefix: &str) {
        let shards = self.0.unwrap_or(0);
        let gone = |shard: u32| systems.delete(&data_path(prefix, shard, shards)).is_ok();
        let _ = (0..shards).all(gone);
    }
}

/// True if an index with this error counts as missing.
fn is_unreadable(code: Code) -> bool {
    use Code::{DataLoss, InvalidArgument, NotFound, OutOfRange, PermissionDenied};
    matches!(code, NotFound | DataLoss | OutOfRange | InvalidArgument | PermissionDenied)
}

/// Creates the empty data files, so that all files that the index counts exist.
pub(super) fn write_empty(systems: &FileSystems, prefix: &str, files: u32, shards: u32) -> Result<()> {
    (files..shards).try_for_each(|shard| systems.write(&data_path(prefix, shard, shards), b""))
}
