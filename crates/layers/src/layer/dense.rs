//! Layers that connect everything, and forgetting at random.

use super::Activation;
use crate::{Formula, Formulas, Initializer, VariableScope};
use graph::Output;
use ops::nn::bias::bias_add;
use ops::raw;

/// `activation(x kernel + bias)`, with variables `kernel` and `bias`.
#[derive(Clone)]
pub struct Dense {
    units: usize,
    activation: Option<Activation>,
    kernel: Initializer,
    bias: Option<Initializer>,
}

impl Dense {
    /// A layer of this many units: Glorot weights, zero bias, no activation.
    pub fn new(units: usize) -> Dense {
        Dense { units, activation: None, kernel: Initializer::glorot_uniform(), bias: Some(Initializer::Zeros) }
    }

    /// With an activation: `.activation(Formula::relu)`.
    pub fn activation(mut self, activation: Activation) -> Dense {
        self.activation = Some(activation);
        self
    }

    /// With other first weights.
    pub fn kernel(mut self, initializer: Initializer) -> Dense {
        self.kernel = initializer;
        self
    }

    /// With another first bias, or without one.
    pub fn bias(mut self, initializer: Option<Initializer>) -> Dense {
        self.bias = initializer;
        self
    }

    /// The layer on rows of `x`, with its variables in `variables`.
    pub fn apply(&self, variables: &VariableScope, x: &Output) -> Output {
        let x = x.seen_from(variables.scope());
        let Some(width) = x.shape().dims().and_then(|dims| dims.last().copied()).and_then(|d| usize::try_from(d).ok())
        else {
            let error =
                status::invalid!("The last dimension of the inputs to Dense should be defined, found {}", x.shape());
            x.scope().graph().fail(error);
            return x;
        };
        let variables = variables.dtype(x.dtype());
        let kernel = variables.get_with("kernel", [width, self.units], self.kernel.clone(), true);
        let mut y = x.matmul(&kernel);
        if let Some(initializer) = &self.bias {
            y = bias_add(&y, &variables.get_with("bias", [self.units], initializer.clone(), true));
        }
        self.activation.map_or_else(|| y.clone(), |activation| activation(&y))
    }
}

/// Elements set to zero with probability `rate`, the others made larger by as much.
pub fn dropout(x: &Output, rate: f64, seed: Option<i64>) -> Output {
    if rate <= 0.0 {
        return x.clone();
    }
    let scope = x.scope();
    let random = ops::random::draw::random_uniform(&x.dims(), x.dtype(), seed);
    let kept = raw::greater_equal(&random, &random.like(rate)).output();
    let scaled = x * (1.0 / (1.0 - rate));
    raw::select_v2(&kept, &scaled, &scope.constant(0f32).cast(x.dtype())).output()
}
