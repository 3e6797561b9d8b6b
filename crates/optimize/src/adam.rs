//! Adam and AdaMax: moving averages of gradients and of their squares.

use crate::{Rate, UpdateContext, UpdateRule};
use graph::{Node, Output};
use layers::{TensorOps, Variable};
use op::{Gradient, Slices};
use ops::training::{apply_ada_max, apply_adam};

/// Kingma and Ba 2014. Slots: `m`, `v`; for all variables: `beta1_power`, `beta2_power`.
#[derive(Clone)]
pub struct Adam {
    /// The learning rate.
    pub rate: Rate,
    /// The decay of the moving average of gradients.
    pub beta1: f64,
    /// The decay of the moving average of squares.
    pub beta2: f64,
    /// Added to divisors, so that they are never zero.
    pub epsilon: f64,
    /// Whether to use Nesterov's form.
    pub nesterov: bool,
}

impl Adam {
    /// With this learning rate.
    pub fn new(rate: impl Into<Rate>) -> Adam {
        Adam { rate: rate.into(), beta1: 0.9, beta2: 0.999, epsilon: 1e-8, nesterov: false }
    }

    /// The powers of `beta1` and `beta2`.
    fn powers(&self, at: &UpdateContext<'_>, first: &Variable) -> [Variable; 2] {
        [at.shared(first, "beta1_power", self.beta1), at.shared(first, "beta2_power", self.beta2)]
    }

    /// The moving averages of all rows decay; the gradient is added to its rows.
    fn apply_rows(
        &self,
        at: &UpdateContext<'_>,
        variable: &Variable,
        slots: [&Variable; 2],
        step: Step,
        rows: &Slices,
    ) -> Node {
        let Step { powers: [power1, power2], rate, beta1, beta2, epsilon } = step;
        let rate = rate * (1.0 - power2).sqrt() / (1.0 - power1);
        let fade = |slot: &Variable, share: &Output, values: Output| -> Output {
            let faded = slot.assign(&(slot.read(at.scope()) * share));
            let values = values.seen_from(&at.scope().after([&faded]));
            let added = slot.scatter_add(&rows.indices, &values.identity());
            slot.read(&at.scope().after([&added]))
        };
        let m = fade(slots[0], &beta1, &rows.values * (1.0 - &beta1));
        let v = fade(slots[1], &beta2, rows.values.square() * (1.0 - &beta2));
        variable.assign_sub(&(rate * m / (v.sqrt() + epsilon)).seen_from(at.scope()))
    }
}

/// The values of one step.
struct Step {
    powers: [Output; 2],
    rate: Output,
    beta1: Output,
    beta2: Output,
    epsilon: Output,
}

impl UpdateRule for Adam {
    fn name(&self) -> &'static str {
        "Adam"
    }

    fn apply(&self, at: &UpdateContext<'_>, first: &Variable, variable: &Variable, gradient: &Gradient) -> Node {
        let (m, v) = (at.slot(variable, "m", 0.0), at.slot(variable, "v", 0.0));
        let dtype = variable.dtype();
        let powers = self.powers(at, first).map(|power| power.value().seen_from(at.scope()).cast(dtype));
        let numbers = [&self.rate, &self.beta1.into(), &self.beta2.into(), &self.epsilon.into()];
        let [rate, beta1, beta2, epsilon] = at.numbers(numbers, variable);
        match gradient {
            Gradient::Sparse(rows) => {
                let step = Step { powers, rate, beta1, beta2, epsilon };
                self.apply_rows(at, variable, [&m, &v], step, rows)
            }
            Gradient::Dense(gradient) => {
                let numbers = [&powers[0], &powers[1], &rate, &beta1, &beta2, &epsilon];
                let (m, v) = (at.handle(&m), at.handle(&v));
                apply_adam(&at.handle(variable), &m, &v, numbers, gradient, self.nesterov)
            }
        }
    }

    fn finish(&self, at: &UpdateContext<'_>, first: &Variable) -> Option<Node> {
        let scope = at.scope().beside(first.handle().node());
        let [power1, power2] = self.powers(at, first);
        let first = power1.assign(&(power1.value().seen_from(&scope) * self.beta1));
        let second = power2.assign(&(power2.value().seen_from(&scope) * self.beta2));
        Some(ops::raw::no_op(&scope.after([&first, &second])).named("powers").node())
    }
}

/// Adam with the largest of past gradients in place of squares. Slots: `m`, `v`; for all variables: `beta1_power`.
#[derive(Clone)]
pub struct AdaMax {
    /// The learning rate.
    pub rate: Rate,
    /// The decay of the moving average of gradients.
    pub beta1: f64,
    /// The decay of the largest gradient.
    pub beta2: f64,
    /// Added to divisors, so that they are never zero.
    pub epsilon: f64,
}

impl AdaMax {
    /// With this learning rate.
    pub fn new(rate: impl Into<Rate>) -> AdaMax {
        AdaMax { rate: rate.into(), beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }
}

impl UpdateRule for AdaMax {
    fn name(&self) -> &'static str {
        "AdaMax"
    }

    fn apply(&self, at: &UpdateContext<'_>, first: &Variable, variable: &Variable, gradient: &Gradient) -> Node {
        let (m, v) = (at.slot(variable, "m", 0.0), at.slot(variable, "v", 0.0));
        let power = at.shared(first, "beta1_power", self.beta1);
        let power = power.value().seen_from(at.scope()).cast(variable.dtype());
        let numbers = [&self.rate, &self.beta1.into(), &self.beta2.into(), &self.epsilon.into()];
        let [rate, beta1, beta2, epsilon] = at.numbers(numbers, variable);
        match gradient {
            Gradient::Dense(gradient) => {
                let numbers = [&power, &rate, &beta1, &beta2, &epsilon];
                apply_ada_max(&at.handle(variable), &at.handle(&m), &at.handle(&v), numbers, gradient)
            }
            Gradient::Sparse(rows) => {
                let gather = |slot: &Variable| slot.gather(&rows.indices);
                let new_m = gather(&m) * &beta1 + &rows.values * (1.0 - &beta1);
                let new_v = (gather(&v) * &beta2).maximum(&rows.values.abs());
                let change = rate / (1.0 - power) * (&new_m / (&new_v + &epsilon));
                let updates = [
                    m.scatter_update(&rows.indices, &new_m),
                    v.scatter_update(&rows.indices, &new_v),
                    variable.scatter_sub(&rows.indices, &change),
                ];
                ops::raw::no_op(&at.scope().after(&updates)).named("rows").node()
            }
        }
    }

    fn finish(&self, at: &UpdateContext<'_>, first: &Variable) -> Option<Node> {
        let scope = at.scope().beside(first.handle().node());
        let power = at.shared(first, "beta1_power", self.beta1);
        Some(power.assign(&(power.value().seen_from(&scope) * self.beta1)))
    }
}
