//! Adagrad: smaller steps for variables that had large gradients.

use crate::{Rate, UpdateContext, UpdateRule};
use graph::Node;
use layers::{ScopeOps, Variable};
use op::Gradient;
use ops::training::apply_proximal_adagrad;
use ops::training::{apply_adagrad, apply_adagrad_da};
use status::invalid;

/// `a += g²; w -= rate g / √a`. Slot: `accumulator`.
#[derive(Clone)]
pub struct Adagrad {
    /// The learning rate.
    pub rate: Rate,
    /// The initial value of the accumulators.
    pub initial_accumulator: f64,
}

impl Adagrad {
    /// With this learning rate.
    pub fn new(rate: impl Into<Rate>) -> Adagrad {
        Adagrad { rate: rate.into(), initial_accumulator: 0.1 }
    }
}

impl UpdateRule for Adagrad {
    fn name(&self) -> &'static str {
        "Adagrad"
    }

    fn apply(&self, at: &UpdateContext<'_>, _: &Variable, variable: &Variable, gradient: &Gradient) -> Node {
        let accumulator = at.slot(variable, "accumulator", self.initial_accumulator);
        let rate = at.number(&self.rate, variable.dtype());
        apply_adagrad(&at.handle(variable), &at.handle(&accumulator), &rate, gradient)
    }
}

/// Adagrad with dual averaging, for sparse models. Needs a step counter.
/// Slots: `gradient_accumulator`, `gradient_squared_accumulator`.
#[derive(Clone)]
pub struct AdagradDa {
    /// The learning rate.
    pub rate: Rate,
    /// The initial value of the accumulators of squares.
    pub initial_accumulator: f64,
    /// The strength of L1 regularization.
    pub l1: f64,
    /// The strength of L2 regularization.
    pub l2: f64,
}

impl AdagradDa {
    /// With this learning rate and no regularization.
    pub fn new(rate: impl Into<Rate>) -> AdagradDa {
        AdagradDa { rate: rate.into(), initial_accumulator: 0.1, l1: 0.0, l2: 0.0 }
    }
}

impl UpdateRule for AdagradDa {
    fn name(&self) -> &'static str {
        "AdagradDA"
    }

    fn apply(&self, at: &UpdateContext<'_>, _: &Variable, variable: &Variable, gradient: &Gradient) -> Node {
        let sum = at.slot_named(variable, "gradient_accumulator", "AdagradDA/gradient_accumulator", 0.0);
        let name = "AdagradDA/gradient_squared_accumulator";
        let squares = at.slot_named(variable, "gradient_squared_accumulator", name, self.initial_accumulator);
        let [rate, l1, l2] = at.numbers([&self.rate, &self.l1.into(), &self.l2.into()], variable);
        let step = match at.step() {
            // The rule counts from one.
            Some(step) => step.read(at.scope()) + 1.0,
            None => {
                at.scope().graph().fail(invalid!("AdagradDA needs a step counter"));
                at.scope().constant(0i64)
            }
        };
        let numbers = [&rate, &l1, &l2, &step];
        apply_adagrad_da(&at.handle(variable), &at.handle(&sum), &at.handle(&squares), gradient, numbers)
    }
}

/// Adagrad with L1 and L2 regularization (proximal). Slot: `accumulator`.
#[derive(Clone)]
pub struct ProximalAdagrad {
    /// The learning rate.
    pub rate: Rate,
    /// The initial value of the accumulators.
    pub initial_accumulator: f64,
    /// The strength of L1 regularization.
    pub l1: f64,
    /// The strength of L2 regularization.
    pub l2: f64,
}

impl ProximalAdagrad {
    /// With this learning rate and no regularization.
    pub fn new(rate: impl Into<Rate>) -> ProximalAdagrad {
        ProximalAdagrad { rate: rate.into(), initial_accumulator: 0.1, l1: 0.0, l2: 0.0 }
    }
}

impl UpdateRule for ProximalAdagrad {
    fn name(&self) -> &'static str {
        "ProximalAdagrad"
    }

    fn apply(&self, at: &UpdateContext<'_>, _: &Variable, variable: &Variable, gradient: &Gradient) -> Node {
        let accumulator = at.slot(variable, "accumulator", self.initial_accumulator);
        let [rate, l1, l2] = at.numbers([&self.rate, &self.l1.into(), &self.l2.into()], variable);
        apply_proximal_adagrad(&at.handle(variable), &at.handle(&accumulator), [&rate, &l1, &l2], gradient)
    }
}
