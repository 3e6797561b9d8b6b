//! Moving and selecting elements: constants, shapes, slices, gathers.

#[macro_use]
pub(crate) mod units;
pub(crate) mod args;
pub(crate) mod walk;

pub mod concat;
pub mod constant;
pub mod fill;
pub mod identity;
pub mod pack;
pub mod pad;
pub mod range;
pub mod reshape;
pub mod shape;
pub mod slice;
pub mod split;
pub mod transpose;

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    concat::OPS,
    constant::OPS,
    fill::OPS,
    identity::OPS,
    pack::OPS,
    pad::OPS,
    range::OPS,
    reshape::OPS,
    shape::OPS,
    slice::OPS,
    split::OPS,
    transpose::OPS,
];
