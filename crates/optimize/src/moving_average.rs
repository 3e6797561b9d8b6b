//! Exponential moving averages of variables and other values.

use graph::{Graph, Node, Output, Scope};
use layers::collection::{
    MOVING_AVERAGE_VARIABLES, add_variable, global_variables, trainable_variables, variables as collected,
};
use layers::{Initializer, TensorOps, Variable, VariableBuilder};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// The name of averages, below the name of the averaged variable or value.
const NAME: &str = "ExponentialMovingAverage";

/// Keeps, for each variable `w`, a variable `w/ExponentialMovingAverage`; likewise for other values.
pub struct ExponentialMovingAverage {
    decay: f64,
    updates: Option<Output>,
    zero_debias: bool,
    /// By the handles of variables, and by the names of other values.
    averages: Mutex<BTreeMap<String, Average>>,
}

#[derive(Clone)]
struct Average {
    variable: Variable,
    /// For an average without the bias towards its initial zero: the biased average, and the number of updates.
    biased: Option<(Variable, Variable)>,
}

impl ExponentialMovingAverage {
    /// Averages with this decay.
    pub fn new(decay: f64) -> ExponentialMovingAverage {
        ExponentialMovingAverage { decay, updates: None, zero_debias: false, averages: Mutex::default() }
    }

    /// The same, faster at first: the decay is at most `(1 + n) / (10 + n)` at update `n`.
    pub fn with_updates(mut self, n: &Output) -> ExponentialMovingAverage {
        self.updates = Some(n.clone());
        self
    }

    /// The same, with averages that are corrected for their initial zero: after `n` updates they are divided by
    /// `1 - decay ^ n`. This concerns values that are not variables; the average of a variable starts as the variable.
    pub fn zero_debias(mut self) -> ExponentialMovingAverage {
        self.zero_debias = true;
        self
    }

    /// A node that updates the averages of these variables once.
    pub fn apply(&self, variables: &[Variable]) -> Option<Node> {
        self.apply_in(&variables.first()?.graph().root(), variables)
    }

    /// As [`ExponentialMovingAverage::apply`], after the control inputs of `scope`.
    pub fn apply_in(&self, scope: &Scope, variables: &[Variable]) -> Option<Node> {
        variables.first()?;
        let scope = scope.named(NAME);
        let update = |variable: &Variable| {
            let average = self.average_of(variable);
            let beside = scope.beside(average.variable.handle().node());
            self.update(&beside, &average, &variable.read(&beside))
        };
        let updates: Vec<Node> = variables.iter().map(update).collect();
        Some(ops::control::group_in(&scope, &updates))
    }

    /// As [`ExponentialMovingAverage::apply`], for values that are not variables, such as a loss. Their averages
    /// start with zero.
    pub fn apply_to_values(&self, values: &[Output]) -> Option<Node> {
        let scope = values.first()?.scope().graph().root().named(NAME);
        let update = |value: &Output| {
            let average = self.average_of_value(value);
            let beside = scope.beside(average.variable.handle().node());
            self.update(&beside, &average, &value.seen_from(&beside))
        };
        let updates: Vec<Node> = values.iter().map(update).collect();
        Some(ops::control::group_in(&scope, &updates))
    }

    /// The average of a variable, if there is one.
    pub fn average(&self, variable: &Variable) -> Option<Variable> {
        self.find(&variable.handle().name())
    }

    /// The average of another value, if there is one.
    pub fn value_average(&self, value: &Output) -> Option<Variable> {
        self.find(&value.name())
    }

    /// The name of the average of a variable.
    pub fn average_name(&self, variable: &Variable) -> String {
        let kept = self.average(variable).map(|average| average.name());
        kept.unwrap_or_else(|| format!("{}/{NAME}", variable.name()))
    }

    /// The variables of a graph by the names from which to restore them, so that they get their averages: `averaged`
    /// (all trainable and averaged ones, if empty) by the names of their averages, all others by their own.
    pub fn variables_to_restore(&self, graph: &Graph, averaged: &[Variable]) -> BTreeMap<String, Variable> {
        let averaged = match averaged.is_empty() {
            true => [trainable_variables(graph), collected(graph, MOVING_AVERAGE_VARIABLES)].concat(),
            false => averaged.to_vec(),
        };
        let own: BTreeSet<String> = averaged.iter().map(Variable::name).collect();
        let mut found: BTreeMap<String, Variable> =
            averaged.into_iter().map(|variable| (self.average_name(&variable), variable)).collect();
        for variable in global_variables(graph).into_iter().filter(|variable| !own.contains(&variable.name())) {
            found.entry(variable.name()).or_insert(variable);
        }
        found
    }

    fn find(&self, name: &str) -> Option<Variable> {
        Some(self.averages.lock().get(name)?.variable.clone())
    }

    fn average_of(&self, variable: &Variable) -> Average {
        let make = || {
            let scope = variable.graph().root().reenter(&variable.name()).beside(variable.handle().node());
            let builder = Variable::builder(&scope, NAME).kind(variable.kind()).slot_of(variable).trainable(false);
            add_variable(MOVING_AVERAGE_VARIABLES, variable);
            Average { variable: builder.value(variable.initial_value()).build(), biased: None }
        };
        self.averages.lock().entry(variable.handle().name()).or_insert_with(make).clone()
    }

    fn average_of_value(&self, value: &Output) -> Average {
        let make = || {
            let scope = value.scope().reenter(&value.node().name());
            let variable = zeros_like(Variable::builder(&scope, NAME), value);
            let scope = scope.reenter(&variable.name()).beside(variable.handle().node());
            let biased = self.zero_debias.then(|| {
                let count = Variable::builder(&scope, "local_step").dtype(value.dtype()).trainable(false).build();
                (zeros_like(Variable::builder(&scope, "biased"), value), count)
            });
            Average { variable, biased }
        };
        self.averages.lock().entry(value.name()).or_insert_with(make).clone()
    }

    fn update(&self, scope: &Scope, average: &Average, value: &Output) -> Node {
        let Some((biased, count)) = &average.biased else {
            return self.update_average(scope, &average.variable, value);
        };
        let followed = self.update_average(scope, biased, value);
        let counted = count.assign_add(&value.seen_from(scope).like(1.0));
        let after = scope.after([&followed, &counted]);
        let kept = 1.0 - self.weight(&after, value);
        let share = 1.0 - kept.pow(&count.read(&after));
        average.variable.assign(&(biased.read(&after) / share))
    }

    fn update_average(&self, scope: &Scope, average: &Variable, value: &Output) -> Node {
        let past = average.read(scope);
        let weight = self.weight(scope, value);
        average.assign_sub(&((past - value) * weight))
    }

    /// The weight of a new value in its average: one minus the decay, computed as a float even for doubles, as in
    /// TensorFlow.
    fn weight(&self, scope: &Scope, value: &Output) -> Output {
        match self.decay_now() {
            Some(decay) => (1.0 - decay.seen_from(scope)).cast(value.dtype()),
            None => value.seen_from(scope).like(f64::from(1.0 - self.decay as f32)),
        }
    }

    fn decay_now(&self) -> Option<Output> {
        let n = self.updates.as_ref()?.cast(tensor::DType::F32);
        let early = (&n + 1.0) / (&n + 10.0);
        Some(early.minimum(&early.like(self.decay)))
    }
}

/// A variable of zeros with the shape of a value.
fn zeros_like(builder: VariableBuilder, value: &Output) -> Variable {
    let builder = builder.dtype(value.dtype()).trainable(false);
    match value.shape().known() {
        Some(shape) => builder.shape(shape).initializer(Initializer::Zeros).build(),
        None => builder.value(&value.zeros_like()).build(),
    }
}
