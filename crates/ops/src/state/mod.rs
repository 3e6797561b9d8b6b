//! State that outlives a step: variables of both kinds, stacks, arrays.

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[];
