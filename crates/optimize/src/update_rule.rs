//! What an optimizer must say of itself, and what it is given.

use graph::{Node, Output, Scope};
use layers::{Formula, Formulas, Initializer, Variable};
use op::Gradient;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use tensor::DType;

/// A rule by which a variable follows its gradient.
pub trait UpdateRule: Send + Sync {
    /// Its name, before the names of its nodes.
    fn name(&self) -> &'static str;

    /// A node that changes `variable`; `first` is the one of all variables beside which the state they share lives.
    fn apply(&self, at: &UpdateContext<'_>, first: &Variable, variable: &Variable, gradient: &Gradient) -> Node;

    /// A node that runs after all variables were changed.
    fn finish(&self, _at: &UpdateContext<'_>, _first: &Variable) -> Option<Node> {
        None
    }

    /// Whether rows of a gradient that come twice must be summed first.
    fn sums_rows(&self) -> bool {
        true
    }
}

/// A number that may change from step to step.
#[derive(Clone)]
pub enum Rate {
    /// Always this one.
    Number(f64),
    /// What this output says.
    Output(Output),
}

impl From<f64> for Rate {
    fn from(number: f64) -> Rate {
        Rate::Number(number)
    }
}

impl From<&Output> for Rate {
    fn from(output: &Output) -> Rate {
        Rate::Output(output.clone())
    }
}

impl From<Output> for Rate {
    fn from(output: Output) -> Rate {
        Rate::Output(output)
    }
}

/// Where a rule adds its nodes, and what it keeps.
pub struct UpdateContext<'a> {
    pub(crate) scope: Scope,
    pub(crate) root: Scope,
    pub(crate) slots: &'a Mutex<BTreeMap<(String, String), Variable>>,
    pub(crate) name: &'static str,
    pub(crate) step: Option<&'a Variable>,
}

impl UpdateContext<'_> {
    /// Where nodes go: beside the variable.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// A number, as the type of a variable. It is a float first even for doubles, as in TensorFlow: `1 - 0.999` is not
    /// the same there, and workers in Rust and in Python are to make the same steps.
    pub fn number(&self, rate: &Rate, dtype: DType) -> Output {
        match rate {
            Rate::Output(output) => output.seen_from(&self.scope).cast(dtype),
            Rate::Number(number) => match dtype {
                DType::F64 => self.scope.constant(f64::from(*number as f32)),
                DType::F32 => self.scope.constant(*number as f32),
                _ => self.scope.constant(*number).cast(dtype),
            },
        }
    }

    /// Numbers, as the type of a variable.
    pub fn numbers<const N: usize>(&self, rates: [&Rate; N], variable: &Variable) -> [Output; N] {
        rates.map(|rate| self.number(rate, variable.dtype()))
    }

    /// The handle of a variable, whose users go to this scope.
    pub fn handle(&self, variable: &Variable) -> Output {
        variable.handle().seen_from(&self.scope)
    }

    /// What the optimizer keeps for `variable` under this name: a variable of the same shape that begins as
    /// `first` everywhere, called like the optimizer.
    pub fn slot(&self, variable: &Variable, slot: &str, first: f64) -> Variable {
        self.slot_named(variable, slot, self.name, first)
    }

    /// As `slot`, called `<variable>/<name>`.
    pub fn slot_named(&self, variable: &Variable, slot: &str, name: &str, first: f64) -> Variable {
        let key = (variable.name(), slot.to_string());
        if let Some(known) = self.slots.lock().get(&key) {
            return known.clone();
        }
        let scope = self.root.reenter(&variable.name()).beside(variable.handle().node());
        let builder = Variable::build(&scope, name).dtype(variable.dtype()).kind(variable.kind()).trainable(false);
        let builder = builder.slot_of(variable);
        let made = match variable.shape().known() {
            Some(shape) => builder.shape(shape).initializer(Initializer::Constant(first)).make(),
            None => {
                let like = variable.initial_value().seen_from(&scope);
                let number = like.like(first);
                builder.value(&ops::raw::fill(&like.dims(), &number).output()).make()
            }
        };
        self.slots.lock().insert(key, made.clone());
        made
    }

    /// One float that the optimizer keeps for all variables, whatever their type, beside `first`.
    pub fn shared(&self, first: &Variable, name: &str, value: f64) -> Variable {
        let key = (String::new(), name.to_string());
        if let Some(known) = self.slots.lock().get(&key) {
            return known.clone();
        }
        let scope = self.root.beside(first.handle().node());
        let builder = Variable::build(&scope, name).dtype(DType::F32).kind(first.kind()).trainable(false);
        let made = builder.initializer(Initializer::Constant(value)).make();
        self.slots.lock().insert(key, made.clone());
        made
    }

    /// The step counter, if the caller counts steps.
    pub fn step(&self) -> Option<&Variable> {
        self.step
    }
}
