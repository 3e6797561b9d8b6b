//! A folder for the files of a test. The tests of other crates include this file too.
#![allow(dead_code, reason = "each crate uses a part")]

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty folder on disk that is deleted when the test ends.
pub struct Folder(pub String);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (crate_name, number) = (env!("CARGO_PKG_NAME"), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("{crate_name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path.to_string_lossy().into_owned())
    }

    pub fn path(&self) -> &Path {
        Path::new(&self.0)
    }

    pub fn join(&self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
