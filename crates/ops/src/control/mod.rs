//! Control flow, functions, and what crosses tasks.

use op::Op;

pub mod call;
pub mod flow;
pub mod loops;
pub mod transfer;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[call::OPS, flow::OPS, loops::OPS, transfer::OPS];
