//! Initial values of variables.

use crate::ScopeOps;
use graph::{Output, Scope};
use ops::random::{random_standard_normal, random_uniform, truncated_normal};
use ops::raw;
use tensor::{DType, Shape, Tensor};

/// How a variable is initialized.
#[derive(Clone, Debug)]
pub enum Initializer {
    /// Zeros.
    Zeros,
    /// Ones.
    Ones,
    /// The same number everywhere.
    Constant(f64),
    /// This value.
    Value(Tensor),
    /// Uniformly distributed numbers.
    Uniform {
        /// The lower bound.
        low: f64,
        /// The upper bound, which is excluded.
        high: f64,
        /// The seed, for the same numbers in every run.
        seed: Option<i64>,
    },
    /// Normally distributed numbers.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
        /// The seed, for the same numbers in every run.
        seed: Option<i64>,
    },
    /// Normally distributed numbers, of which those beyond two standard deviations are drawn again.
    TruncatedNormal {
        /// The mean.
        mean: f64,
        /// The standard deviation before truncation.
        deviation: f64,
        /// The seed, for the same numbers in every run.
        seed: Option<i64>,
    },
    /// Numbers whose variance is `scale` divided by the number of connections.
    Scaling {
        /// The numerator of the variance.
        scale: f64,
        /// The connections that count.
        fan: Fan,
        /// Whether the distribution is uniform; else it is truncated normal.
        uniform: bool,
        /// The seed, for the same numbers in every run.
        seed: Option<i64>,
    },
}

/// The connections of a unit that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fan {
    /// Inputs.
    In,
    /// Outputs.
    Out,
    /// The mean of inputs and outputs.
    Average,
}

/// The standard deviation of a standard normal distribution truncated at two.
const TRUNCATED_DEVIATION: f64 = 0.879_625_661_034_239_8;

impl Initializer {
    /// Glorot and Bengio 2010, uniform: the default for weights.
    pub fn glorot_uniform() -> Initializer {
        Initializer::Scaling { scale: 1.0, fan: Fan::Average, uniform: true, seed: None }
    }

    /// Glorot and Bengio 2010, normal.
    pub fn glorot_normal() -> Initializer {
        Initializer::Scaling { scale: 1.0, fan: Fan::Average, uniform: false, seed: None }
    }

    /// He et al. 2015, uniform: for layers with ReLU.
    pub fn he_uniform() -> Initializer {
        Initializer::Scaling { scale: 2.0, fan: Fan::In, uniform: true, seed: None }
    }

    /// He et al. 2015, normal.
    pub fn he_normal() -> Initializer {
        Initializer::Scaling { scale: 2.0, fan: Fan::In, uniform: false, seed: None }
    }

    /// LeCun et al. 1998, normal.
    pub fn lecun_normal() -> Initializer {
        Initializer::Scaling { scale: 1.0, fan: Fan::In, uniform: false, seed: None }
    }

    /// The same with a seed: every run draws the same numbers, those of TensorFlow with this seed.
    pub fn seeded(mut self, number: i64) -> Initializer {
        match &mut self {
            Initializer::Uniform { seed, .. }
            | Initializer::Normal { seed, .. }
            | Initializer::TruncatedNormal { seed, .. }
            | Initializer::Scaling { seed, .. } => *seed = Some(number),
            _ => {}
        }
        self
    }

    /// The initial value of a variable of this type and shape, as nodes in `scope`.
    pub fn build(&self, scope: &Scope, dtype: DType, shape: &Shape) -> Output {
        match self {
            Initializer::Zeros => filled(scope, dtype, shape, 0.0),
            Initializer::Ones => filled(scope, dtype, shape, 1.0),
            Initializer::Constant(value) => filled(scope, dtype, shape, *value),
            Initializer::Value(value) => scope.constant(value),
            Initializer::Uniform { low, high, seed } => {
                random_uniform(&dims(scope, shape), dtype, *seed) * (high - low) + *low
            }
            Initializer::Normal { mean, deviation, seed } => {
                random_standard_normal(&dims(scope, shape), dtype, *seed) * *deviation + *mean
            }
            Initializer::TruncatedNormal { mean, deviation, seed } => {
                truncated_normal(&dims(scope, shape), dtype, *seed) * *deviation + *mean
            }
            Initializer::Scaling { .. } => self.resolved(shape).build(scope, dtype, shape),
        }
    }

    /// The initializer of a part of a variable of this shape.
    pub(crate) fn for_part(&self, whole: &Shape) -> Initializer {
        self.resolved(whole)
    }

    /// A scaling initializer with its bounds for a shape.
    fn resolved(&self, shape: &Shape) -> Initializer {
        let Initializer::Scaling { scale, fan, uniform, seed } = *self else { return self.clone() };
        let (fan_in, fan_out) = fans(shape);
        let connections = match fan {
            Fan::In => fan_in,
            Fan::Out => fan_out,
            Fan::Average => (fan_in + fan_out) / 2.0,
        };
        let variance = scale / connections.max(1.0);
        match uniform {
            true => Initializer::Uniform { low: -(3.0 * variance).sqrt(), high: (3.0 * variance).sqrt(), seed },
            false => Initializer::TruncatedNormal { mean: 0.0, deviation: variance.sqrt() / TRUNCATED_DEVIATION, seed },
        }
    }
}

/// The number of inputs and outputs of a unit; the window of a filter counts for both.
fn fans(shape: &Shape) -> (f64, f64) {
    match shape.dims() {
        [] => (1.0, 1.0),
        [n] => (*n as f64, *n as f64),
        [window @ .., fan_in, fan_out] => {
            let window: f64 = window.iter().map(|&n| n as f64).product();
            (window * *fan_in as f64, window * *fan_out as f64)
        }
    }
}

fn dims(scope: &Scope, shape: &Shape) -> Output {
    scope.constant(shape.iter().map(|&dim| dim as i32).collect::<Vec<_>>())
}

/// A tensor filled with a value. It is filled when the step runs, so that the graph stays small.
fn filled(scope: &Scope, dtype: DType, shape: &Shape, value: f64) -> Output {
    if matches!(dtype, DType::STRING | DType::BOOL) {
        return match Tensor::zeros_of(dtype, shape) {
            Ok(zeros) => scope.constant(zeros),
            Err(error) => {
                scope.graph().fail(error);
                scope.constant(0f32)
            }
        };
    }
    let number = number(scope, dtype, value);
    raw::fill(&dims(scope, shape), &number).named("fill").output()
}

/// A number as a scalar of a type.
fn number(scope: &Scope, dtype: DType, value: f64) -> Output {
    match dtype {
        DType::F32 => scope.constant(value as f32),
        DType::F64 => scope.constant(value),
        _ => raw::cast(&scope.constant(value), dtype).output(),
    }
}
