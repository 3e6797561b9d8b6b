//! File systems over a network: object stores and HDFS, selected by URL scheme.
//!
//! Each scheme is a cargo feature: `s3`, `gs`, `az`, `hdfs`. The crate implements the file-system trait of `io`.
//! Requests run on threads of its own, and callers see blocking functions. It does not read the environment:
//! addresses, credentials and limits are passed as [`StoreOptions`].
//!
//! ```
//! use flowgrid_store::{StoreOptions, file_systems};
//!
//! let options = StoreOptions::new().with("AWS_ENDPOINT_URL", "http://127.0.0.1:9000");
//! let systems = file_systems(&options);
//! # drop(systems);
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "hdfs")]
mod hdfs;
#[cfg(feature = "objects")]
mod objects;
mod options;
#[cfg(feature = "runtime")]
mod threads;

pub use options::StoreOptions;

use io::FileSystems;

/// The local disk, a new `ram://`, and all stores of this build. A connection is opened by the first access to a
/// file.
pub fn file_systems(options: &StoreOptions) -> FileSystems {
    add_stores(FileSystems::local(), options)
}

#[cfg(not(feature = "runtime"))]
fn add_stores(systems: FileSystems, _: &StoreOptions) -> FileSystems {
    systems
}

#[cfg(feature = "runtime")]
fn add_stores(mut systems: FileSystems, options: &StoreOptions) -> FileSystems {
    let threads = std::sync::Arc::new(threads::Threads::default());
    #[cfg(feature = "objects")]
    for (scheme, connect) in objects::connect::schemes(options) {
        let system = objects::ObjectFileSystem::new(scheme, connect, threads.clone(), options);
        systems = systems.with(scheme, std::sync::Arc::new(system));
    }
    #[cfg(feature = "hdfs")]
    {
        let system = std::sync::Arc::new(hdfs::HdfsFileSystem::new(threads.clone(), options));
        systems = systems.with("hdfs", system.clone()).with("viewfs", system);
    }
    drop(threads);
    systems
}

#[cfg(test)]
mod tests;
