//! Fully connected layers.

use super::{Activation, Layer, Phase};
use crate::{Initializer, TensorOps, VariableScope};
use graph::Output;
use ops::nn::bias_add;

/// `activation(x kernel + bias)`, with variables `kernel` and `bias`.
#[derive(Clone)]
pub struct Dense {
    units: usize,
    activation: Option<Activation>,
    kernel: Initializer,
    bias: Option<Initializer>,
}

impl Dense {
    /// A layer with this many outputs: weights initialized by Glorot's rule, bias zero, no activation.
    pub fn new(units: usize) -> Dense {
        Dense { units, activation: None, kernel: Initializer::glorot_uniform(), bias: Some(Initializer::Zeros) }
    }

    /// Applies a function to the result: `.activation(TensorOps::relu)`.
    pub fn activation(mut self, activation: Activation) -> Dense {
        self.activation = Some(activation);
        self
    }

    /// Sets the initializer of the weights.
    pub fn kernel(mut self, initializer: Initializer) -> Dense {
        self.kernel = initializer;
        self
    }

    /// Sets the initializer of the bias; `None` for a layer without a bias.
    pub fn bias(mut self, initializer: Option<Initializer>) -> Dense {
        self.bias = initializer;
        self
    }

    /// Applies the layer to the last dimension of `x`; the variables are called `kernel` and `bias` in `variables`.
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

impl Layer for Dense {
    fn forward(&self, variables: &VariableScope, x: &Output, _: Phase) -> Output {
        self.apply(variables, x)
    }

    fn default_name(&self) -> &str {
        "dense"
    }
}
