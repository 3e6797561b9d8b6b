//! Adadelta: the step size follows from past updates and past gradients.

use crate::{Rate, UpdateContext, UpdateRule};
use graph::Node;
use layers::Variable;
use op::Gradient;
use ops::training::apply_adadelta;

/// Zeiler 2012. Slots: `accum`, `accum_update`.
#[derive(Clone)]
pub struct Adadelta {
    /// The learning rate.
    pub rate: Rate,
    /// The decay of past values.
    pub rho: f64,
    /// Added to divisors, so that they are never zero.
    pub epsilon: f64,
}

impl Adadelta {
    /// With this learning rate.
    pub fn new(rate: impl Into<Rate>) -> Adadelta {
        Adadelta { rate: rate.into(), rho: 0.95, epsilon: 1e-8 }
    }
}

impl UpdateRule for Adadelta {
    fn name(&self) -> &'static str {
        "Adadelta"
    }

    fn apply(&self, at: &UpdateContext<'_>, _: &Variable, variable: &Variable, gradient: &Gradient) -> Node {
        let gradients = at.slot(variable, "accum", 0.0);
        let updates = at.slot(variable, "accum_update", 0.0);
        let [rate, rho, epsilon] = at.numbers([&self.rate, &self.rho.into(), &self.epsilon.into()], variable);
        let numbers = [&rate, &rho, &epsilon];
        apply_adadelta(&at.handle(variable), &at.handle(&gradients), &at.handle(&updates), numbers, gradient)
    }
}
