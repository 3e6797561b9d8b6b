//! Neural networks: activations, losses, normalisation, convolutions, pooling.

use op::Op;

pub mod relu;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[relu::OPS];
