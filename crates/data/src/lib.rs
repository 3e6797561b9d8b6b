//! Input pipelines: datasets, iterators and their ops.
//!
//! A [`Dataset`] describes a sequence of elements: a source, or a transformation of other datasets. It is a value on the
//! edges of a graph. An iterator runs it: a tree of [`Iterate`] values, one for each dataset, that belongs to a
//! [`Pipeline`]. Elements are polled for, so that a stage that waits holds no thread; stages that work ahead are
//! [`Task`]s on the threads of the step. The crate knows neither sessions nor the network: files are read through `io`,
//! functions are called through `op`.
//!
//! ```
//! let registry = flowgrid_data::registry();
//! assert!(registry.op("RangeDataset").is_some() && registry.op("MatMul").is_some());
//! ```
#![forbid(unsafe_code)]

mod ahead;
pub mod attrs;
mod budget;
mod cardinality;
mod compress;
mod consume;
mod dataset;
mod element;
mod function;
mod function_chain;
mod graphs;
mod input;
mod iterate;
pub mod iterators;
mod limits;
mod memory;
mod options;
mod pipeline;
pub mod raw;
mod rewrite;
pub mod sources;
mod state;
mod task;
mod timer;
pub mod transformations;
mod wire;

pub use ahead::Ahead;
pub use budget::{Budget, Share, Sizing};
pub use cardinality::Cardinality;
pub use dataset::{Dataset, DatasetRef, PendingElement, Place, dataset_of, dataset_tensor, fold};
pub use element::{Element, Spec};
pub use function::{Call, Function, FunctionRun};
pub use input::Input;
pub use iterate::{Iterate, Next, PollContext};
pub use options::Options;
pub use pipeline::Pipeline;
pub use rewrite::{Rewrite, Rewrites};
pub use state::{StateReader, StateWriter, full_name};
pub use task::{Task, Work};
pub use transformations::stats_aggregator::Stats;

use op::{Op, Registry};
use std::sync::{Arc, OnceLock};

/// The op table with the rows of all ops.
pub fn registry() -> Arc<Registry> {
    static REGISTRY: OnceLock<Arc<Registry>> = OnceLock::new();
    REGISTRY.get_or_init(|| Arc::new(ops::registry_with(&families().map(|(_, tables)| tables).concat()))).clone()
}

/// The families of the ops of this crate with their tables, by the name of the module.
pub fn families() -> [(&'static str, &'static [&'static [Op]]); 3] {
    [("iterators", iterators::TABLES), ("sources", sources::TABLES), ("transformations", transformations::TABLES)]
}

#[cfg(test)]
mod tests;
