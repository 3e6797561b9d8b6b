//! Files that real TensorFlow wrote (`fixtures/write.py` says how), damaged files, and files written here.

mod bundle;
mod events;
mod examples;
mod files;
mod first_format;
mod input;
mod journal;
mod models;
mod overwrite;
mod pieces;
mod python;
mod records;
mod rows;
mod slots;
mod snapshots;
mod state;
mod tables;

use crate::FileSystems;
use std::sync::atomic::{AtomicU32, Ordering};

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

/// An empty folder on disk that goes away with the test.
struct Folder(String);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("flowgrid-io-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path.to_string_lossy().into_owned())
    }

    fn join(&self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
