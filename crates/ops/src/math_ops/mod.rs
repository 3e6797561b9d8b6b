//! Numbers: element by element, reductions, matrix products.

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[];
