//! I turn bytes in files into records, events, checkpoints, saved models; I own file systems.
#![forbid(unsafe_code)]

pub mod bundle;
mod crc;
mod event;
mod file;
mod record;
mod saved_model;
mod table;
mod wire;

pub use bundle::Bundle;
pub use event::{Event, EventReader, EventWhat, SummaryValue};
pub use record::RecordReader;
pub use saved_model::{MetaGraph, SavedModel, SignatureInfo, TensorInfo};
pub use table::Table;

#[cfg(test)]
mod tests;
