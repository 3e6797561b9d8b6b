//! The checkpoint that has a name already when another of that name is written.
//!
//! Two files cannot change hands at once, so the new files of tensors must not have the names of the present ones. Their
//! names say how many there are: the new checkpoint has another number of files, if need be an empty one more. The
//! present checkpoint stays whole until the index, which says how many files there are, is replaced by one rename.

use super::{data_path, index_path, wire};
use crate::Table;
use crate::fs::FileSystems;
use status::{Code, Result};

/// How many files of tensors the checkpoint of a name has; none if there is none that can be read.
pub(super) struct Present(Option<u32>);

impl Present {
    /// What is there now.
    pub fn of(systems: &FileSystems, prefix: &str) -> Result<Present> {
        let header = Table::open(systems, &index_path(prefix)).and_then(|table| table.get(b""));
        match header.and_then(|header| wire::decode_header(header.unwrap_or_default())) {
            Ok(header) => Ok(Present(Some(header.shards))),
            Err(error) if is_unreadable(error.code) => Ok(Present(None)),
            // Whether there is one will be known later.
            Err(error) => Err(error),
        }
    }

    /// How many files a checkpoint of `files` files is to have here.
    pub fn shards_beside(&self, files: u32) -> u32 {
        files + u32::from(self.0 == Some(files))
    }

    /// Takes its files away: the index says nothing of them any more. Files that cannot be deleted do no harm.
    pub fn clear(self, systems: &FileSystems, prefix: &str) {
        let shards = self.0.unwrap_or(0);
        let gone = |shard: u32| systems.delete(&data_path(prefix, shard, shards)).is_ok();
        let _ = (0..shards).all(gone);
    }
}

/// Whether an index with this error is none, for us at least.
fn is_unreadable(code: Code) -> bool {
    use Code::{DataLoss, InvalidArgument, NotFound, OutOfRange, PermissionDenied};
    matches!(code, NotFound | DataLoss | OutOfRange | InvalidArgument | PermissionDenied)
}

/// Writes the files that hold no tensor, so that all files that the index counts are there.
pub(super) fn write_empty(systems: &FileSystems, prefix: &str, files: u32, shards: u32) -> Result<()> {
    (files..shards).try_for_each(|shard| systems.write(&data_path(prefix, shard, shards), b""))
}
