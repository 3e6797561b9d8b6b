//! Random numbers: the same seeds give the same numbers as in TensorFlow.

use op::Op;

pub mod draw;
pub mod keyed;
pub mod shuffle;
pub mod stateless;
mod stream;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[draw::OPS, keyed::OPS, shuffle::OPS, stateless::OPS];
