//! Files that real TensorFlow wrote (`fixtures/write.py` says how), damaged files, and files written here.

mod bundle;
mod events;
mod examples;
mod files;
mod first_format;
mod folder;
mod input;
mod journal;
mod models;
mod overwrite;
mod pieces;
mod python;
mod records;
mod row_files;
mod rows;
mod slots;
mod snapshots;
mod state;
mod tables;

use self::folder::Folder;
use crate::FileSystems;

/// The name of a file that TensorFlow wrote.
fn fixture(name: &str) -> String {
    format!("{}/src/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Its bytes.
fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name)).unwrap()
}

/// File systems whose `ram://` holds a file with these bytes, under `ram://file`.
fn holding(bytes: &[u8]) -> FileSystems {
    let systems = FileSystems::local();
    systems.write("ram://file", bytes).unwrap();
    systems
}
