//! Follow the regularised leader.

use crate::{Rate, UpdateContext, UpdateRule};
use graph::Node;
use layers::Variable;
use op::Gradient;
use ops::training::{apply_ftrl, apply_ftrl_v2};

/// McMahan et al. 2013. Slots: `accum`, `linear`.
#[derive(Clone)]
pub struct Ftrl {
    /// The learning rate.
    pub rate: Rate,
    /// The power of the accumulator that steps are divided by; not above zero.
    pub rate_power: f64,
    /// The initial value of the accumulators.
    pub initial_accumulator: f64,
    /// The strength of L1 regularization.
    pub l1: f64,
    /// The strength of L2 regularization.
    pub l2: f64,
    /// Strength of the pull by the sum of squares, on the gradient.
    pub l2_shrinkage: f64,
}

impl Ftrl {
    /// With this learning rate and no regularization.
    pub fn new(rate: impl Into<Rate>) -> Ftrl {
        Ftrl { rate: rate.into(), rate_power: -0.5, initial_accumulator: 0.1, l1: 0.0, l2: 0.0, l2_shrinkage: 0.0 }
    }
}

impl UpdateRule for Ftrl {
    fn name(&self) -> &'static str {
        "Ftrl"
    }

    fn apply(&self, at: &UpdateContext<'_>, _: &Variable, variable: &Variable, gradient: &Gradient) -> Node {
        let accumulator = at.slot(variable, "accum", self.initial_accumulator);
        let linear = at.slot(variable, "linear", 0.0);
        let numbers = [&self.rate, &self.l1.into(), &self.l2.into(), &self.rate_power.into()];
        let [rate, l1, l2, power] = at.numbers(numbers, variable);
        let (var, accumulator, linear) = (at.handle(variable), at.handle(&accumulator), at.handle(&linear));
        if self.l2_shrinkage == 0.0 {
            return apply_ftrl([&var, &accumulator, &linear], gradient, [&rate, &l1, &l2, &power]);
        }
        let shrinkage = at.number(&self.l2_shrinkage.into(), variable.dtype());
        apply_ftrl_v2([&var, &accumulator, &linear], gradient, [&rate, &l1, &l2, &shrinkage, &power])
    }
}
