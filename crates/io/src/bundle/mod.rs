//! Checkpoints: an index that says which tensors there are, and files that hold them.

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

/// Told how many bytes were written or read since it was told last.
pub type Watch = Arc<dyn Fn(u64) + Send + Sync>;

/// Where a tensor of a checkpoint is.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
    /// Which file.
    pub shard: u32,
    /// Where it begins there.
    pub offset: u64,
    /// How many bytes.
    pub size: u64,
    /// Its masked checksum.
    pub crc: u32,
    /// The slices it is stored in; none if it is whole.
    pub slices: Vec<TensorSlice>,
}

/// What an index says about the checkpoint as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Header {
    /// How many files hold the tensors.
    pub shards: u32,
    /// Whether numbers have their most significant byte first.
    pub big_endian: bool,
    /// The version that wrote it, and the oldest that may read it.
    pub producer: i32,
    pub min_consumer: i32,
}

/// The version of the format that is written here.
const VERSION: i32 = 1;

impl Header {
    /// What is written here.
    fn ours(shards: u32) -> Header {
        Header { shards, big_endian: false, producer: VERSION, min_consumer: 0 }
    }
}

/// Writes an index that need not be true.
#[cfg(test)]
pub(crate) fn write_index(
    systems: &crate::FileSystems,
    prefix: &str,
    shards: u32,
    entries: &std::collections::BTreeMap<Vec<u8>, Entry>,
) -> status::Result<()> {
    writer::write_index(systems, prefix, &Header::ours(shards), entries)
}

/// The file of the index of a checkpoint.
pub fn index_path(prefix: &str) -> String {
    format!("{prefix}.index")
}

/// A file of tensors of a checkpoint.
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
