//! Datasets that produce elements of their own.

mod range;

use op::Op;

pub(crate) const TABLES: &[&[Op]] = &[range::OPS];
