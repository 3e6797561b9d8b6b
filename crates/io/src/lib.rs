//! File formats of TensorFlow (records, events, checkpoints, saved models), and the file-system trait.
//!
//! The crate turns bytes in files into values and back. File systems are passed in as a [`FileSystems`] value, so the
//! formats work on any store. Network file systems are in `store`; deciding what is saved and when is the task of the
//! crates above.
//!
//! ```
//! use flowgrid_io::{Bundle, BundleWriter, FileSystems};
//! use tensor::Tensor;
//!
//! let systems = FileSystems::local();
//! let mut writer = BundleWriter::create(&systems, "ram://model")?;
//! writer.add("weights", &Tensor::vector(&[1f32, 2.0]))?;
//! writer.finish()?;
//! assert_eq!(Bundle::open(&systems, "ram://model")?.read("weights")?.values::<f32>()?, [1.0, 2.0]);
//! # Ok::<(), status::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod bundle;
mod coding;
mod crc;
mod cursor;
pub mod event;
pub mod example;
pub mod fs;
mod input;
pub mod journal;
pub mod message;
mod ordered;
mod record;
pub mod rows;
pub mod saved_model;
pub mod slice;
pub mod snapshot;
pub mod state;
mod table;
pub mod tensor_slice;
pub mod text;
mod wire;

pub use bundle::{Bundle, BundleWriter};
pub use event::{Event, EventReader, EventWhat, EventWriter};
pub use fs::{FileSystem, FileSystems};
pub use input::InputStream;
pub use record::{Compression, RecordReader, RecordWriter};
pub use saved_model::{MetaGraph, SavedModel};
pub use slice::TensorSlice;
pub use state::{CheckpointState, latest_checkpoint};
pub use table::{Table, TableBuilder};
pub use tensor_slice::{TensorSliceReader, TensorSliceWriter};

#[cfg(test)]
mod tests;
