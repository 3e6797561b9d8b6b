//! Datasets for Rust programs.
//!
//! A [`Dataset`] adds the ops of an input pipeline to a graph; the pipeline runs on the device of the scope in which it is
//! built. An iterator of it gives the next element in each step. [`Dataset::iter`] runs a pipeline outside any graph of the
//! program. The crate contains no kernels: those are in `data`.
//!
//! ```
//! use flowgrid_input::Dataset;
//! use graph::{Graph, Output};
//!
//! let graph = Graph::with_ops(data::registry());
//! let squares = Dataset::range(&graph.root(), 0..6).map(|x: Output| &x * &x).batch(4);
//! let batches: Vec<Vec<i64>> = squares.values::<Vec<i64>>()?.collect::<Result<_, _>>()?;
//! assert_eq!(batches, [vec![0, 1, 4, 9], vec![16, 25]]);
//! # Ok::<(), status::Error>(())
//! ```
#![forbid(unsafe_code)]

mod dataset;
mod features;
mod files;
mod iterator;
mod padding;
#[cfg(feature = "parquet")]
mod parquet;
mod run;
mod shapes;
mod structure;
mod transform;

pub use dataset::Dataset;
pub use features::{Feature, Features, parse_example};
pub use files::CsvOptions;
pub use iterator::DatasetIterator;
pub use padding::PaddedBatchOptions;
pub use run::{ElementValues, Elements};
pub use structure::Structure;

pub use io::Compression;

#[cfg(test)]
mod tests;
