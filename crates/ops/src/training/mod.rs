//! Optimizer steps, each of which updates a variable and its slots in one pass, and other ways to train: dual coordinate
//! ascent, clusters, word vectors.

use op::Op;

pub(crate) mod adadelta;
pub(crate) mod adagrad;
pub(crate) mod adam;
pub(crate) mod clustering;
pub(crate) mod ftrl;
pub(crate) mod gradient_descent;
pub(crate) mod momentum;
pub(crate) mod proximal;
pub(crate) mod rms_prop;
pub(crate) mod sdca;
pub(crate) mod sign;
mod slots;
pub(crate) mod word2vec;

pub use self::adadelta::apply_adadelta;
pub use self::adagrad::{apply_adagrad, apply_adagrad_da, apply_adagrad_v2};
pub use self::adam::{apply_ada_max, apply_adam, apply_adam_with_amsgrad};
pub use self::ftrl::{apply_ftrl, apply_ftrl_v2};
pub use self::gradient_descent::apply_gradient_descent;
pub use self::momentum::{apply_keras_momentum, apply_momentum};
pub use self::proximal::{apply_proximal_adagrad, apply_proximal_gradient_descent};
pub use self::rms_prop::{apply_centered_rms_prop, apply_rms_prop};
pub use self::sign::{apply_add_sign, apply_power_sign};

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
