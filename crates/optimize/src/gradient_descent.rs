//! Gradient descent, with or without momentum.

use crate::{Rate, UpdateContext, UpdateRule};
use graph::Node;
use layers::Variable;
use op::Gradient;
use ops::training::apply_gradient_descent;
use ops::training::apply_momentum;
use ops::training::apply_proximal_gradient_descent;

/// `w -= rate g`.
#[derive(Clone)]
pub struct GradientDescent {
    /// The learning rate.
    pub rate: Rate,
}

impl GradientDescent {
    /// With this learning rate.
    pub fn new(rate: impl Into<Rate>) -> GradientDescent {
        GradientDescent { rate: rate.into() }
    }
}

impl UpdateRule for GradientDescent {
    fn name(&self) -> &'static str {
        "GradientDescent"
    }

    fn apply(&self, at: &UpdateContext<'_>, _: &Variable, variable: &Variable, gradient: &Gradient) -> Node {
        apply_gradient_descent(&at.handle(variable), &at.number(&self.rate, variable.dtype()), gradient)
    }

    fn sums_rows(&self) -> bool {
        false
    }
}

/// `a = momentum a + g; w -= rate a`. Slot: `momentum`.
#[derive(Clone)]
pub struct Momentum {
    /// The learning rate.
    pub rate: Rate,
    /// The decay of past values.
    pub momentum: Rate,
    /// Whether to use Nesterov's form, which looks one step ahead.
    pub nesterov: bool,
}

impl Momentum {
    /// With this learning rate and momentum.
    pub fn new(rate: impl Into<Rate>, momentum: impl Into<Rate>) -> Momentum {
        Momentum { rate: rate.into(), momentum: momentum.into(), nesterov: false }
    }

    /// Uses Nesterov's form.
    pub fn nesterov(mut self) -> Momentum {
        self.nesterov = true;
        self
    }
}

impl UpdateRule for Momentum {
    fn name(&self) -> &'static str {
        "Momentum"
    }

    fn apply(&self, at: &UpdateContext<'_>, _: &Variable, variable: &Variable, gradient: &Gradient) -> Node {
        let accumulator = at.slot(variable, "momentum", 0.0);
        let [rate, momentum] = at.numbers([&self.rate, &self.momentum], variable);
        let accumulator = at.handle(&accumulator);
        apply_momentum(&at.handle(variable), &accumulator, &rate, gradient, &momentum, self.nesterov)
    }
}

/// Gradient descent with L1 and L2 regularization (proximal, FOBOS).
#[derive(Clone)]
pub struct ProximalGradientDescent {
    /// The learning rate.
    pub rate: Rate,
    /// The strength of L1 regularization.
    pub l1: f64,
    /// The strength of L2 regularization.
    pub l2: f64,
}

impl ProximalGradientDescent {
    /// With this learning rate and no regularization.
    pub fn new(rate: impl Into<Rate>) -> ProximalGradientDescent {
        ProximalGradientDescent { rate: rate.into(), l1: 0.0, l2: 0.0 }
    }
}

impl UpdateRule for ProximalGradientDescent {
    fn name(&self) -> &'static str {
        "ProximalGradientDescent"
    }

    fn apply(&self, at: &UpdateContext<'_>, _: &Variable, variable: &Variable, gradient: &Gradient) -> Node {
        let [rate, l1, l2] = at.numbers([&self.rate, &self.l1.into(), &self.l2.into()], variable);
        apply_proximal_gradient_descent(&at.handle(variable), [&rate, &l1, &l2], gradient)
    }
}
