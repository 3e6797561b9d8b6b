//! RMSProp: gradients divided by the root of the mean of past squares.

use crate::{Rate, UpdateContext, UpdateRule};
use graph::Node;
use layers::Variable;
use op::Gradient;
use ops::training::{apply_centered_rms_prop, apply_rms_prop};

/// Hinton 2012. Slots: `rms`, `mg` if centered, `momentum`.
#[derive(Clone)]
pub struct RmsProp {
    /// The learning rate.
    pub rate: Rate,
    /// The decay of the moving average of squares.
    pub decay: f64,
    /// The share of the last update that is added.
    pub momentum: f64,
    /// Added to divisors, so that they are never zero.
    pub epsilon: f64,
    /// Whether to divide by the variance of past gradients instead of the mean of their squares.
    pub centered: bool,
}

impl RmsProp {
    /// With this learning rate.
    pub fn new(rate: impl Into<Rate>) -> RmsProp {
        RmsProp { rate: rate.into(), decay: 0.9, momentum: 0.0, epsilon: 1e-10, centered: false }
    }
}

impl UpdateRule for RmsProp {
    fn name(&self) -> &'static str {
        "RMSProp"
    }

    fn apply(&self, at: &UpdateContext<'_>, _: &Variable, variable: &Variable, gradient: &Gradient) -> Node {
        let squares = at.slot(variable, "rms", 1.0);
        let mean = self.centered.then(|| at.slot(variable, "mg", 0.0));
        let momentum = at.slot(variable, "momentum", 0.0);
        let numbers = [&self.rate, &self.decay.into(), &self.momentum.into(), &self.epsilon.into()];
        let numbers = at.numbers(numbers, variable);
        let numbers = numbers.each_ref();
        let (var, squares, momentum) = (at.handle(variable), at.handle(&squares), at.handle(&momentum));
        match mean {
            None => apply_rms_prop([&var, &squares, &momentum], numbers, gradient),
            Some(mean) => apply_centered_rms_prop([&var, &at.handle(&mean), &squares, &momentum], numbers, gradient),
        }
    }
}
