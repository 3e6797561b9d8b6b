//! Datasets that are saved to files and loaded again.

mod chunks;
mod dataset;
mod late_input;
mod load;
mod reader;
mod save;
mod shards;
mod writer;

pub(super) use chunks::OPS as CHUNKS;
pub(super) use dataset::OPS as DATASET;
pub(super) use load::OPS as LOAD;
pub(super) use reader::OPS as READER;
pub(super) use save::OPS as SAVE;
