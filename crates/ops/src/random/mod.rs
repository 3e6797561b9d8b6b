//! Random numbers: the same seeds give the same numbers as in TensorFlow.

use op::Op;

pub(crate) mod binomial;
pub(crate) mod bounded_normal;
pub(crate) mod candidates;
pub(crate) mod draw;
pub(crate) mod gamma;
pub(crate) mod gamma_grad;
pub(crate) mod generator;
pub(crate) mod index_shuffle;
pub(crate) mod keyed;
pub(crate) mod multinomial;
pub(crate) mod poisson;
mod sampler;
pub(crate) mod shuffle;
pub(crate) mod sobol;
pub(crate) mod stateless;
pub(crate) mod stochastic_cast;
pub(crate) mod stream;
pub(crate) mod unigram;
pub(crate) mod words;

pub use self::binomial::stateless_random_binomial;
pub use self::candidates::log_uniform_candidate_sampler;
pub use self::draw::{random_standard_normal, random_uniform, random_uniform_int, truncated_normal};
pub use self::gamma::random_gamma;
pub use self::gamma_grad::random_gamma_grad;
pub use self::generator::rng_read_and_skip;
pub use self::index_shuffle::{random_index_shuffle, shuffled};
pub use self::keyed::{stateless_random_get_alg, stateless_random_get_key_counter};
pub use self::multinomial::multinomial;
pub use self::poisson::random_poisson;
pub use self::shuffle::random_shuffle;
pub use self::sobol::sobol_sample;
pub use self::stateless::{
    stateless_random_normal, stateless_random_uniform, stateless_random_uniform_int, stateless_truncated_normal,
};

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
