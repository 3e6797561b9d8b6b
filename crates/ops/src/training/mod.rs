//! Optimizer steps: each op updates a variable and its slots in one pass.

use op::Op;

pub mod adadelta;
pub mod adagrad;
pub mod adam;
pub mod ftrl;
pub mod gradient_descent;
pub mod momentum;
pub mod proximal;
pub mod rms_prop;
pub mod sign;
mod slots;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    adadelta::OPS,
    adagrad::OPS,
    adam::OPS,
    ftrl::OPS,
    gradient_descent::OPS,
    momentum::OPS,
    proximal::OPS,
    rms_prop::OPS,
    sign::OPS,
];
