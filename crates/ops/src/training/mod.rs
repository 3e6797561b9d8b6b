//! Updates of variables by optimizers.

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[];
