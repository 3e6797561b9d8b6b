//! Datasets that are saved to files and loaded again.

mod chunks;
mod dataset;
mod late_input;
mod load;
mod reader;
mod save;
mod shards;

use op::Op;

pub(crate) const TABLES: &[&[Op]] = &[chunks::OPS, dataset::OPS, load::OPS, reader::OPS, save::OPS];
