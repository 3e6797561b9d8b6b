//! Averages of variables that follow them slowly.

use graph::{Node, Output, Scope};
use layers::collection::{GLOBAL_VARIABLES, MOVING_AVERAGE_VARIABLES};
use layers::{Formula, Variable};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Keeps, for each variable `w`, a variable `w/ExponentialMovingAverage`.
pub struct ExponentialMovingAverage {
    decay: f64,
    updates: Option<Output>,
    averages: Mutex<BTreeMap<String, Variable>>,
}

impl ExponentialMovingAverage {
    /// Averages that keep this share of their past at each update.
    pub fn new(decay: f64) -> ExponentialMovingAverage {
        ExponentialMovingAverage { decay, updates: None, averages: Mutex::default() }
    }

    /// The same, faster in the beginning: the share is at most `(1 + n) / (10 + n)` at update `n`.
    pub fn with_updates(mut self, n: &Output) -> ExponentialMovingAverage {
        self.updates = Some(n.clone());
        self
    }

    /// A node that makes the averages follow these variables once.
    pub fn apply(&self, variables: &[Variable]) -> Option<Node> {
        self.apply_in(&variables.first()?.graph().root(), variables)
    }

    /// As `apply`, after what `scope` waits for.
    pub fn apply_in(&self, scope: &Scope, variables: &[Variable]) -> Option<Node> {
        variables.first()?;
        let scope = scope.named("ExponentialMovingAverage");
        let updates: Vec<Node> = variables
            .iter()
            .map(|variable| {
                let average = self.average_of(variable);
                let scope = scope.beside(average.handle().node());
                let past = average.read(&scope);
                let fresh = match self.decay_now() {
                    Some(decay) => 1.0 - decay.seen_from(&scope).cast(variable.dtype()),
                    None => past.like(1.0 - self.decay),
                };
                average.assign_sub(&((past - variable.read(&scope)) * fresh))
            })
            .collect();
        Some(scope.after(&updates).op("NoOp").named_as_scope().node())
    }

    /// The average of a variable, if it is kept.
    pub fn average(&self, variable: &Variable) -> Option<Variable> {
        self.averages.lock().get(&variable.name()).cloned()
    }

    /// The name of the average of a variable.
    pub fn average_name(&self, variable: &Variable) -> String {
        format!("{}/ExponentialMovingAverage", variable.name())
    }

    fn average_of(&self, variable: &Variable) -> Variable {
        let mut averages = self.averages.lock();
        let make = || {
            let scope = variable.graph().root().reenter(&variable.name()).beside(variable.handle().node());
            let builder = Variable::build(&scope, "ExponentialMovingAverage").kind(variable.kind()).slot_of(variable);
            let average = builder.value(variable.initial_value()).trainable(false);
            average.collections(&[GLOBAL_VARIABLES, MOVING_AVERAGE_VARIABLES]).make()
        };
        averages.entry(variable.name()).or_insert_with(make).clone()
    }

    fn decay_now(&self) -> Option<Output> {
        let n = self.updates.as_ref()?.cast(tensor::DType::F32);
        let early = (&n + 1.0) / (&n + 10.0);
        Some(early.minimum(&early.like(self.decay)))
    }
}
