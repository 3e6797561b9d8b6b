//! Datasets that transform the elements of other datasets.

mod batch;
mod map;
mod stack;

use op::Op;

pub(crate) const TABLES: &[&[Op]] = &[batch::OPS, map::OPS];
