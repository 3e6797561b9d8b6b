//! Optimizers: from a loss to a node that makes it smaller.

use crate::{UpdateContext, UpdateRule};
use gradient::GradientOptions;
use graph::{Node, Output, Scope};
use layers::collection::{TRAIN_OP, trainable_variables};
use layers::{Formulas, Kind, Variable};
use op::{Gradient, Slices};
use ops::control::no_op::group_in;
use parking_lot::Mutex;
use status::{Result, invalid};
use std::collections::BTreeMap;

/// A rule by which variables follow their gradients, and the state it keeps for each variable.
///
/// There is no `use_locking`: on our servers an op that changes variables always locks them, so the updates of several
/// workers come one after another, and nobody reads one that is half done. On TensorFlow's servers they are not locked,
/// which is the default of its own optimizers too.
pub struct Optimizer {
    rule: Box<dyn UpdateRule>,
    colocate: bool,
    /// Variables of the optimizer itself, by the variable they belong to and by slot.
    slots: Mutex<BTreeMap<(String, String), Variable>>,
}

impl Optimizer {
    /// An optimizer by this rule: `Optimizer::new(Adam::new(0.001))`.
    pub fn new(rule: impl UpdateRule + 'static) -> Optimizer {
        Optimizer::over(Box::new(rule))
    }

    pub(crate) fn over(rule: Box<dyn UpdateRule>) -> Optimizer {
        Optimizer { rule, colocate: false, slots: Mutex::default() }
    }

    /// The same, with every gradient on the device of what it is the gradient of: a tower's on its worker.
    pub fn colocate_gradients(self) -> Optimizer {
        Optimizer { colocate: true, ..self }
    }

    /// A node that makes `loss` smaller by one step, changing all trainable variables.
    pub fn minimize(&self, loss: &Output) -> Result<Node> {
        self.minimize_with(loss, &[], None)
    }

    /// As `minimize`: of these variables (all trainable ones if none are named), counting steps.
    pub fn minimize_with(&self, loss: &Output, variables: &[Variable], step: Option<&Variable>) -> Result<Node> {
        let gradients = self.compute_gradients(loss, variables)?;
        if gradients.iter().all(|(gradient, _)| gradient.is_none()) {
            let names: Vec<String> = gradients.iter().map(|(_, variable)| format!("'{}'", variable.name())).collect();
            return Err(invalid!(
                "No gradients provided for any variable, check your graph for ops that do not support gradients, \
                 between variables [{}] and loss {}.",
                names.join(", "),
                loss.name()
            ));
        }
        self.apply_gradients(&gradients, step)
    }

    /// The gradient of `loss` by each of these variables (all trainable ones if none are named).
    pub fn compute_gradients(
        &self,
        loss: &Output,
        variables: &[Variable],
    ) -> Result<Vec<(Option<Gradient>, Variable)>> {
        let graph = loss.scope().graph();
        let variables = match variables.is_empty() {
            true => trainable_variables(graph),
            false => variables.to_vec(),
        };
        if variables.is_empty() {
            graph.check()?;
            return Err(invalid!("No variables to optimize."));
        }
        let handles: Vec<Output> = variables.iter().map(|variable| variable.handle().clone()).collect();
        let gate = variables.iter().any(|variable| variable.kind() == Kind::Reference);
        let options = GradientOptions { gate, colocate: self.colocate, ..GradientOptions::default() };
        let gradients = gradient::gradients_with(&ops::registry(), std::slice::from_ref(loss), &handles, &options)?;
        Ok(gradients.into_iter().zip(variables).collect())
    }

    /// A node that changes each variable by its gradient, then adds one to the step counter.
    pub fn apply_gradients(&self, gradients: &[(Option<Gradient>, Variable)], step: Option<&Variable>) -> Result<Node> {
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

    /// The variable an optimizer keeps for another, if it does: `momentum`, `m`, `v`, `accumulator`, …
    pub fn slot(&self, variable: &Variable, slot: &str) -> Option<Variable> {
        self.slots.lock().get(&(variable.name(), slot.to_string())).cloned()
    }
}

/// The variable beside which state shared by all of them lives: the first by name, `:0` and all, as in TensorFlow. So
/// workers that made them in another order, or in Python, look for that state on the same task.
fn first_by_name<'a>(found: &[(&Gradient, &'a Variable)]) -> Option<&'a Variable> {
    found.iter().map(|(_, variable)| *variable).min_by_key(|variable| variable.handle().name())
}

/// A gradient whose rows come once each: updates that are not sums must not see a row twice.
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
