//! Batch normalization.

use super::{Layer, Phase};
use crate::collection::UPDATE_OPS;
use crate::{Initializer, ScopeOps, TensorOps, Variable, VariableScope};
use graph::Output;
use ops::raw;

/// Normalizes each channel (the last dimension), with variables `gamma`, `beta`, `moving_mean` and `moving_variance`.
#[derive(Clone, Copy)]
pub struct BatchNorm {
    momentum: f64,
    epsilon: f64,
}

impl Default for BatchNorm {
    fn default() -> BatchNorm {
        BatchNorm { momentum: 0.99, epsilon: 1e-3 }
    }
}

impl BatchNorm {
    /// `momentum` is the decay of the moving averages; `epsilon` is added to the variance, so that it is never zero.
    pub fn new(momentum: f64, epsilon: f64) -> BatchNorm {
        BatchNorm { momentum, epsilon }
    }

    /// Applies the layer to `x`. In [`Phase::Training`] it adds the nodes that update the moving averages to the
    /// collection [`UPDATE_OPS`]; the training step must run them.
    pub fn apply(&self, variables: &VariableScope, x: &Output, phase: Phase) -> Output {
        let x = x.seen_from(variables.scope());
        let Some(channels) = x.shape().rank().and_then(|rank| x.shape().dim(rank.checked_sub(1)?)) else {
            let error = status::invalid!("The last dimension of the inputs should be defined, found {}", x.shape());
            x.scope().graph().fail(error);
            return x;
        };
        let get = |name: &str, first: Initializer, trainable| variables.get_with(name, [channels], first, trainable);
        let (gamma, beta) = (get("gamma", Initializer::Ones, true), get("beta", Initializer::Zeros, true));
        let mean = get("moving_mean", Initializer::Zeros, false);
        let variance = get("moving_variance", Initializer::Ones, false);
        if x.shape().rank() == Some(4) {
            return self.fused(&x, [&gamma, &beta, &mean, &variance], phase);
        }
        let (m, v) = match phase {
            Phase::Inference => (mean.value().clone(), variance.value().clone()),
            Phase::Training => {
                let axes: Vec<i32> = (0..x.shape().rank().unwrap_or(1) as i32 - 1).collect();
                let m = x.mean_over(&axes);
                let v = (&x - &m.stop_gradient()).square().mean_over(&axes);
                self.follow(&mean, &m);
                self.follow(&variance, &v);
                (m, v)
            }
        };
        let scale = (v + self.epsilon).rsqrt() * &gamma;
        &x * &scale + (&beta - m * &scale)
    }

    fn fused(&self, x: &Output, [gamma, beta, mean, variance]: [&Variable; 4], phase: Phase) -> Output {
        let training = phase == Phase::Training;
        let empty = |variable: &Variable| match training {
            true => x.scope().constant(tensor::Tensor::vector::<f32>(&[])),
            false => variable.value().clone(),
        };
        let norm = raw::fused_batch_norm_v3(x, gamma, beta, &empty(mean), &empty(variance));
        let norm = norm.attr("epsilon", self.epsilon as f32).attr("is_training", training).node();
        if training {
            self.follow(mean, &norm.output(1));
            self.follow(variance, &norm.output(2));
        }
        norm.output(0)
    }

    /// `average -= (1 - momentum) (average - value)`, as a node among the updates.
    fn follow(&self, average: &Variable, value: &Output) {
        let step = (average - value) * (1.0 - self.momentum);
        let update = average.assign_sub(&step);
        average.graph().add_to_collection(UPDATE_OPS, update.name());
    }
}

impl Layer for BatchNorm {
    fn forward(&self, variables: &VariableScope, x: &Output, phase: Phase) -> Output {
        self.apply(variables, x, phase)
    }

    fn default_name(&self) -> &str {
        "batch_normalization"
    }
}
