//! Dropout.

use super::{Layer, Phase};
use crate::{ScopeOps, TensorOps, VariableScope};
use graph::Output;

/// Sets elements to zero at random while a model is trained; see [`dropout`].
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    rate: f64,
    seed: Option<i64>,
}

impl Dropout {
    /// Sets elements to zero with this probability.
    pub fn new(rate: f64) -> Dropout {
        Dropout { rate, seed: None }
    }

    /// The same with a seed, so that every run draws the same numbers.
    pub fn seed(self, seed: i64) -> Dropout {
        Dropout { seed: Some(seed), ..self }
    }
}

impl Layer for Dropout {
    fn forward(&self, variables: &VariableScope, x: &Output, phase: Phase) -> Output {
        let x = x.seen_from(variables.scope());
        match phase {
            Phase::Training => drop_out(&x, self.rate, self.seed),
            Phase::Inference => x,
        }
    }

    fn default_name(&self) -> &str {
        "dropout"
    }
}

/// Sets elements to zero with probability `rate` and divides the others by `1 - rate`, so that the mean stays the same.
pub fn dropout(x: &Output, rate: f64) -> Output {
    drop_out(x, rate, None)
}

/// As [`dropout`], with a seed, so that every run draws the same numbers.
pub fn dropout_with_seed(x: &Output, rate: f64, seed: i64) -> Output {
    drop_out(x, rate, Some(seed))
}

fn drop_out(x: &Output, rate: f64, seed: Option<i64>) -> Output {
    if rate <= 0.0 {
        return x.clone();
    }
    let scope = x.scope();
    let random = ops::random::random_uniform(&x.dims(), x.dtype(), seed);
    let kept = ops::raw::greater_equal(&random, &random.like(rate)).output();
    let scaled = x * (1.0 / (1.0 - rate));
    ops::raw::select_v2(&kept, &scaled, &scope.constant(0f32).cast(x.dtype())).output()
}
