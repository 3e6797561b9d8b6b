//! I am files over a network: object stores and HDFS, by scheme. Who calls me sees blocking functions.
//!
//! Each scheme is behind a cargo feature: `s3`, `gs`, `az`, `hdfs`. What they need to know comes as [`StoreOptions`].
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

/// The local disk, a new `ram://`, and all stores this build has. Nothing is connected before a file is asked for.
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
