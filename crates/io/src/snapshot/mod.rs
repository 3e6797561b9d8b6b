//! Saved datasets: folders of record files with the elements, and a file with what is known about them.
//!
//! `<path>/<hash>/snapshot.metadata`, `<path>/<hash>/<run>/<shard>.shard/<chunk>.snapshot`; saved datasets have no folder
//! of a hash. A record is one component of an element, as a serialized tensor.

mod elements;
mod wire;

pub use elements::{ElementReader, ElementWriter};

use crate::FileSystems;
use crate::fs::path::join;
use status::{Code, Result};
use tensor::DType;

/// The version of the format of elements that this crate reads and writes.
pub const VERSION: i64 = 2;

const METADATA: &str = "snapshot.metadata";
const SHARD: &str = ".shard";

/// What is known about a saved dataset.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The fingerprint of the dataset; empty if it has none.
    pub graph_hash: String,
    /// The name of the folder of the run that saved it.
    pub run: String,
    /// When the run began, in microseconds since 1970.
    pub created: i64,
    /// The version of the format of the elements.
    pub version: i64,
    /// The types of the components.
    pub types: Vec<DType>,
    /// The number of elements; -1 for infinitely many, -2 for an unknown number.
    pub elements: i64,
    /// True if the run has ended.
    pub is_complete: bool,
}

impl Metadata {
    /// Reads the file in a folder; none if there is none.
    pub fn read(systems: &FileSystems, folder: &str) -> Result<Option<Metadata>> {
        match systems.read(&join(folder, METADATA)) {
            Ok(bytes) => wire::decode(&bytes).map(Some),
            Err(error) if error.code == Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the file in a folder, which is created if it is missing.
    pub fn write(&self, systems: &FileSystems, folder: &str) -> Result<()> {
        systems.create_dirs(folder)?;
        systems.write(&join(folder, METADATA), &wire::encode(self))
    }
}

/// The folder of a shard of a run.
pub fn shard_folder(run_folder: &str, shard: i64) -> String {
    join(run_folder, &format!("{:08}{SHARD}", shard as u64))
}

/// The folders of all shards of a run, in order.
pub fn shard_folders(systems: &FileSystems, run_folder: &str) -> Result<Vec<String>> {
    let names = match systems.list(run_folder) {
        Err(error) if error.code == Code::NotFound => Vec::new(),
        names => names?,
    };
    let mut folders: Vec<String> =
        names.iter().filter(|name| name.ends_with(SHARD)).map(|name| join(run_folder, name)).collect();
    folders.sort();
    Ok(folders)
}

/// The name of a file of a shard.
pub fn chunk_path(shard_folder: &str, chunk: u64) -> String {
    join(shard_folder, &format!("{chunk:08}.snapshot"))
}
