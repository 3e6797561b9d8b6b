//! Moving and selecting elements: constants, shapes, slices, gathers.

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[];
