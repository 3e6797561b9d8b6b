//! AddSign and PowerSign: larger steps where gradient and momentum have the same sign.

use crate::{Rate, UpdateContext, UpdateRule};
use gradient::densify;
use graph::Node;
use layers::Variable;
use op::Gradient;
use ops::training::{apply_add_sign, apply_power_sign};

/// `w -= rate (alpha + decay sign(g) sign(m)) g`. Slot: `m`.
#[derive(Clone)]
pub struct AddSign {
    /// The learning rate.
    pub rate: Rate,
    /// The step size where the signs differ.
    pub alpha: f64,
    /// The decay of the momentum.
    pub beta: f64,
    /// The weight of the sign.
    pub sign_decay: Rate,
}

impl AddSign {
    /// With this learning rate.
    pub fn new(rate: impl Into<Rate>) -> AddSign {
        AddSign { rate: rate.into(), alpha: 1.0, beta: 0.9, sign_decay: Rate::Number(1.0) }
    }
}

impl UpdateRule for AddSign {
    fn name(&self) -> &'static str {
        "AddSign"
    }

    fn apply(&self, at: &UpdateContext<'_>, _: &Variable, variable: &Variable, gradient: &Gradient) -> Node {
        let momentum = at.slot(variable, "m", 0.0);
        let numbers = [&self.rate, &self.alpha.into(), &self.sign_decay, &self.beta.into()];
        let numbers = at.numbers(numbers, variable);
        let gradient = densify(gradient);
        apply_add_sign(&at.handle(variable), &at.handle(&momentum), numbers.each_ref(), &gradient)
    }
}

/// `w -= rate base ^ (decay sign(g) sign(m)) g`. Slot: `m`.
#[derive(Clone)]
pub struct PowerSign {
    /// The learning rate.
    pub rate: Rate,
    /// The base of the power.
    pub base: f64,
    /// The decay of the momentum.
    pub beta: f64,
    /// The weight of the sign.
    pub sign_decay: Rate,
}

impl PowerSign {
    /// With this learning rate.
    pub fn new(rate: impl Into<Rate>) -> PowerSign {
        PowerSign { rate: rate.into(), base: std::f64::consts::E, beta: 0.9, sign_decay: Rate::Number(1.0) }
    }
}

impl UpdateRule for PowerSign {
    fn name(&self) -> &'static str {
        "PowerSign"
    }

    fn apply(&self, at: &UpdateContext<'_>, _: &Variable, variable: &Variable, gradient: &Gradient) -> Node {
        let momentum = at.slot(variable, "m", 0.0);
        let numbers = [&self.rate, &self.base.ln().into(), &self.sign_decay, &self.beta.into()];
        let numbers = at.numbers(numbers, variable);
        let gradient = densify(gradient);
        apply_power_sign(&at.handle(variable), &at.handle(&momentum), numbers.each_ref(), &gradient)
    }
}
