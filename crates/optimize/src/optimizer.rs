//! Optimizers: from a loss to the node of a training step.

use crate::{MinimizeOptions, UpdateContext, UpdateRule};
use gradient::GradientOptions;
use graph::{Node, Output, Scope};
use layers::collection::{TRAIN_OP, trainable_variables};
use layers::{Kind, ScopeOps, Variable};
use op::{Gradient, Slices};
use ops::control::group_in;
use parking_lot::Mutex;
use status::{Result, invalid};
use std::collections::BTreeMap;

/// An [`UpdateRule`] and the slot variables it keeps for each variable.
///
/// There is no `use_locking`: on our servers an op that updates variables always locks them, so the updates of
/// several workers run one after another, and no reader sees half an update. On TensorFlow's servers they are not
/// locked, which is the default of its own optimizers too.
pub struct Optimizer {
    rule: Box<dyn UpdateRule>,
    colocate: bool,
    /// Slot variables by the name of the variable they belong to and the name of the slot.
    slots: Mutex<BTreeMap<(String, String), Variable>>,
}

impl Optimizer {
    /// An optimizer with this rule: `Optimizer::new(Adam::new(0.001))`.
    pub fn new(rule: impl UpdateRule + 'static) -> Optimizer {
        Optimizer::over(Box::new(rule))
    }

    pub(crate) fn over(rule: Box<dyn UpdateRule>) -> Optimizer {
        Optimizer { rule, colocate: false, slots: Mutex::default() }
    }

    /// The same, with the nodes of every gradient on the device of the op they belong to: those of a tower on its
    /// worker.
    pub fn colocate_gradients(self) -> Optimizer {
        Optimizer { colocate: true, ..self }
    }

    /// A node that runs one training step: it changes all trainable variables so that `loss` becomes smaller.
    pub fn minimize(&self, loss: &Output) -> Result<Node> {
        self.minimize_with(loss, MinimizeOptions::new())
    }

    /// As [`Optimizer::minimize`], with options: `optimizer.minimize_with(&loss, MinimizeOptions::new().step(&step))`.
    pub fn minimize_with(&self, loss: &Output, options: MinimizeOptions) -> Result<Node> {
        let gradients = self.compute_gradients_with(loss, &options)?;
        if gradients.iter().all(|(gradient, _)| gradient.is_none()) {
            let names: Vec<String> = gradients.iter().map(|(_, variable)| format!("'{}'", variable.name())).collect();
            return Err(invalid!(
                "No gradients provided for any variable, check your graph for ops that do not support gradients, \
                 between variables [{}] and loss {}.",
                names.join(", "),
                loss.name()
            ));
        }
        self.apply_gradients_with(&gradients, options)
    }

    /// The gradient of `loss` with respect to each trainable variable: what [`Optimizer::apply_gradients`] takes.
    pub fn compute_gradients(&self, loss: &Output) -> Result<Vec<(Option<Gradient>, Variable)>> {
        self.compute_gradients_with(loss, &MinimizeOptions::new())
    }

    /// As [`Optimizer::compute_gradients`], for the variables of the options.
    pub fn compute_gradients_with(
        &self,
        loss: &Output,
        options: &MinimizeOptions,
    ) -> Result<Vec<(Option<Gradient>, Variable)>> {
        let graph = loss.scope().graph();
        let variables = options.variables.clone().unwrap_or_else(|| trainable_variables(graph));
        if variables.is_empty() {
            graph.check()?;
            return Err(invalid!("No variables to optimize."));
        }
        let handles: Vec<Output> = variables.iter().map(|variable| variable.handle().clone()).collect();
        let gate = variables.iter().any(|variable| variable.kind() == Kind::Reference);
        let options = GradientOptions { gate, colocate: self.colocate, ..GradientOptions::default() };
        let gradients = gradient::gradients_with(&data::registry(), std::slice::from_ref(loss), &handles, &options)?;
        Ok(gradients.into_iter().zip(variables).collect())
    }

    /// A node that changes each variable by its gradient.
    pub fn apply_gradients(&self, gradients: &[(Option<Gradient>, Variable)]) -> Result<Node> {
        self.apply_gradients_with(gradients, MinimizeOptions::new())
    }

    /// As [`Optimizer::apply_gradients`]; then adds one to the step counter of the options.
    pub fn apply_gradients_with(
        &self,
        gradients: &[(Option<Gradient>, Variable)],
        options: MinimizeOptions,
    ) -> Result<Node> {
        let step = options.step.as_ref();
        let Some((_, first)) = gradients.first() else { return Err(invalid!("No variables provided.")) };
        let root = first.graph().root();
        let scope = root.named(self.rule.name());
        let at = |scope: Scope| UpdateContext {
            scope,
            root: root.clone(),
            slots: &self.slots,
            name: self.rule.name(),
            step,
        };
        let found: Vec<(&Gradient, &Variable)> =
            gradients.iter().filter_map(|(gradient, variable)| Some((gradient.as_ref()?, variable))).collect();
        let Some(first) = first_by_name(&found) else {
            return Err(invalid!("No gradients provided for any variable."));
        };
        let mut updates = Vec::new();
        for (gradient, variable) in &found {
            let scope = scope.named(&format!("update_{}", variable.name())).beside(variable.handle().node());
            let gradient = if self.rule.sums_rows() { summed(&scope, gradient) } else { seen(&scope, gradient) };
            updates.push(self.rule.apply(&at(scope.clone()), first, variable, &gradient));
        }
        updates.extend(self.rule.finish(&at(scope.after(&updates)), first));
        first.graph().check()?;
        let train_op = match step {
            None => group_in(&scope, &updates),
            Some(counter) => {
                let scope = scope.after([&group_in(&scope.named("update"), &updates)]).beside(counter.handle().node());
                let one = scope.constant(1i64);
                let one = ops::raw::cast(&one, counter.dtype()).output();
                counter.assign_add(&one)
            }
        };
        train_op.graph().add_to_collection(TRAIN_OP, train_op.name());
        Ok(train_op)
    }

    /// The slot variable of this name (`momentum`, `m`, `v`, `accumulator`, …) for a variable, if there is one.
    pub fn slot(&self, variable: &Variable, slot: &str) -> Option<Variable> {
        self.slots.lock().get(&(variable.name(), slot.to_string())).cloned()
    }
}

/// The variable with which the state shared by all of them is colocated: the first by name with its `:0`, as in
/// TensorFlow. So workers that created them in another order, or in Python, look for that state on the same task.
fn first_by_name<'a>(found: &[(&Gradient, &'a Variable)]) -> Option<&'a Variable> {
    found.iter().map(|(_, variable)| *variable).min_by_key(|variable| variable.handle().name())
}

/// A gradient in which each row occurs once: updates that are not sums must not see a row twice.
fn summed(scope: &Scope, gradient: &Gradient) -> Gradient {
    let Gradient::Sparse(slices) = seen(scope, gradient) else { return seen(scope, gradient) };
    let unique = ops::raw::unique(&slices.indices).node();
    let count = ops::raw::size(&unique.output(0)).output();
    let rows = ops::raw::unsorted_segment_sum(&slices.values, &unique.output(1), &count).output();
    Gradient::Sparse(Slices { indices: unique.output(0), values: rows, shape: slices.shape })
}

fn seen(scope: &Scope, gradient: &Gradient) -> Gradient {
    match gradient {
        Gradient::Dense(output) => Gradient::Dense(output.seen_from(scope)),
        Gradient::Sparse(slices) => Gradient::Sparse(Slices {
            indices: slices.indices.seen_from(scope),
            values: slices.values.seen_from(scope),
            shape: slices.shape.as_ref().map(|shape| shape.seen_from(scope)),
        }),
    }
}
