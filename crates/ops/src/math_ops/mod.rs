//! Mathematical ops: element by element, reductions, matrix products.

#[macro_use]
mod analytic;
#[macro_use]
mod builders;
#[macro_use]
pub(crate) mod core_types;

pub mod add_n;
pub mod arg;
pub mod arithmetic;
mod axes;
pub mod batch_matmul;
pub mod bessel;
pub mod bitwise;
pub(crate) mod broadcast_grad;
pub mod cast;
pub mod clip;
pub mod compare;
pub mod complex;
pub mod composition;
pub mod division;
pub mod exponential;
mod float8;
mod fused_matmul;
pub mod gamma;
mod kernels;
pub mod logical;
pub mod matmul;
pub mod power;
pub mod reduce;
mod reduce_grad;
pub mod rounding;
pub mod scan;
pub mod select;
pub mod special;
mod strings;
pub mod trigonometry;
pub mod unary;

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    add_n::OPS,
    arg::OPS,
    arithmetic::OPS,
    batch_matmul::OPS,
    bessel::OPS,
    bitwise::OPS,
    cast::OPS,
    clip::OPS,
    compare::OPS,
    complex::OPS,
    composition::OPS,
    division::OPS,
    exponential::OPS,
    fused_matmul::OPS,
    gamma::OPS,
    logical::OPS,
    matmul::OPS,
    power::OPS,
    reduce::OPS,
    rounding::OPS,
    scan::OPS,
    select::OPS,
    special::OPS,
    trigonometry::OPS,
    unary::OPS,
];
