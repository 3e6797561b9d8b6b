//! Checkpoints: an index with the names of the tensors, and data files with their values.

mod merge;
mod pieces;
mod present;
mod reader;
mod values;
pub(crate) mod wire;
mod writer;

pub use merge::{MergeOptions, merge_bundles};
pub use pieces::TensorPieces;
pub use reader::Bundle;
pub(crate) use reader::copy_part;
pub use writer::BundleWriter;

use crate::TensorSlice;
use status::{Code, Error};
use std::sync::Arc;
use tensor::{DType, Shape};

/// A callback with the number of bytes written or read since its last call.
pub type Watch = Arc<dyn Fn(u64) + Send + Sync>;

/// The location of a tensor in a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
    /// The number of the data file.
    pub shard: u32,
    /// Its offset in the file.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its masked checksum.
    pub crc: u32,
    /// The slices it is stored in; empty if it is stored as a whole.
    pub slices: Vec<TensorSlice>,
}

/// The header of an index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Header {
    /// The number of data files.
    pub shards: u32,
    /// True if numbers have their most significant byte first.
    pub big_endian: bool,
    /// The version of the writer, and the oldest version that may read it.
    pub producer: i32,
    pub min_consumer: i32,
}

/// The version of the format that this crate writes.
const VERSION: i32 = 1;

impl Header {
    /// The header that this crate writes.
    fn ours(shards: u32) -> Header {
        Header { shards, big_endian: false, producer: VERSION, min_consumer: 0 }
    }
}

/// Writes an index for tests, which may be invalid.
#[cfg(test)]
pub(crate) fn write_index(
    systems: &crate::FileSystems,
    prefix: &str,
    shards: u32,
    entries: &std::collections::BTreeMap<Vec<u8>, Entry>,
) -> status::Result<()> {
    writer::write_index(systems, prefix, &Header::ours(shards), entries)
}

/// The name of the index file of a checkpoint.
pub fn index_path(prefix: &str) -> String {
    format!("{prefix}.index")
}

/// The name of a data file of a checkpoint.
pub fn data_path(prefix: &str, shard: u32, shards: u32) -> String {
    format!("{prefix}.data-{shard:05}-of-{shards:05}")
}

/// The error of an index that cannot be read.
fn corrupt(path: &str, detail: &str, error: &Error) -> Error {
    if error.code == Code::NotFound {
        return error.clone();
    }
    let hint = "Perhaps the file is corrupt or was produced by a newer version of TensorFlow with format changes";
    Error::new(error.code, format!("Unable to read file ({path}). {hint} ({detail}): {}", error.message))
}
