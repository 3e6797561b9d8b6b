//! Optimizer steps, each of which updates a variable and its slots in one pass, and other ways to train: dual coordinate
//! ascent, clusters, word vectors.

use op::Op;

pub mod adadelta;
pub mod adagrad;
pub mod adam;
pub(crate) mod clustering;
pub mod ftrl;
pub mod gradient_descent;
pub mod momentum;
pub mod proximal;
pub mod rms_prop;
pub(crate) mod sdca;
pub mod sign;
mod slots;
pub(crate) mod word2vec;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    adadelta::OPS,
    adagrad::OPS,
    adam::OPS,
    clustering::OPS,
    ftrl::OPS,
    gradient_descent::OPS,
    momentum::OPS,
    proximal::OPS,
    rms_prop::OPS,
    sdca::STEPS,
    sdca::fprint::OPS,
    sdca::shrink::OPS,
    sign::OPS,
    word2vec::OPS,
];
