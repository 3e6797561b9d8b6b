//! Random numbers: the same seeds give the same numbers as in TensorFlow.

use op::Op;

pub mod binomial;
pub mod bounded_normal;
pub mod candidates;
pub mod draw;
pub mod gamma;
pub mod gamma_grad;
pub mod generator;
pub mod index_shuffle;
pub mod keyed;
pub mod multinomial;
pub mod poisson;
mod sampler;
pub mod shuffle;
pub mod sobol;
pub mod stateless;
pub mod stochastic_cast;
pub(crate) mod stream;
pub(crate) mod unigram;
pub(crate) mod words;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    binomial::OPS,
    bounded_normal::OPS,
    candidates::OPS,
    draw::OPS,
    gamma::OPS,
    gamma_grad::OPS,
    generator::OPS,
    index_shuffle::OPS,
    keyed::OPS,
    multinomial::OPS,
    poisson::OPS,
    shuffle::OPS,
    sobol::OPS,
    stateless::OPS,
    stochastic_cast::OPS,
];
