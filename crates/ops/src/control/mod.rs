//! Control flow, functions, and what crosses tasks.

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[];
