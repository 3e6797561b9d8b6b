//! The rule by which an optimizer updates a variable, and what the rule can use.

use graph::{Node, Output, Scope};
use layers::{Initializer, ScopeOps, TensorOps, Variable};
use op::Gradient;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use tensor::DType;

/// A rule that updates a variable by its gradient.
pub trait UpdateRule: Send + Sync {
    /// The name of the rule, which is also the prefix of its nodes.
    fn name(&self) -> &'static str;

    /// A node that updates `variable`. State that all variables share is colocated with `first`.
    fn apply(&self, at: &UpdateContext<'_>, first: &Variable, variable: &Variable, gradient: &Gradient) -> Node;

    /// A node that runs after all updates.
    fn finish(&self, _at: &UpdateContext<'_>, _first: &Variable) -> Option<Node> {
        None
    }

    /// Whether rows that occur twice in a gradient must be summed first.
    fn sums_rows(&self) -> bool {
        true
    }
}

/// A learning rate or another number that may change from step to step.
#[derive(Clone)]
pub enum Rate {
    /// The same number in every step.
    Number(f64),
    /// The value of this output in the step.
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

/// The scope in which a rule adds its nodes, and its slot variables.
pub struct UpdateContext<'a> {
    pub(crate) scope: Scope,
    pub(crate) root: Scope,
    pub(crate) slots: &'a Mutex<BTreeMap<(String, String), Variable>>,
    pub(crate) name: &'static str,
    pub(crate) step: Option<&'a Variable>,
}

impl UpdateContext<'_> {
    /// The scope of new nodes: colocated with the variable.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// A number, converted to the type of a variable. It is rounded to a float even for doubles, as in TensorFlow:
    /// `1 - 0.999` differs, and workers in Rust and in Python must make the same steps.
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

    /// Numbers, converted to the type of a variable.
    pub fn numbers<const N: usize>(&self, rates: [&Rate; N], variable: &Variable) -> [Output; N] {
        rates.map(|rate| self.number(rate, variable.dtype()))
    }

    /// The handle of a variable, whose consumers go to this scope.
    pub fn handle(&self, variable: &Variable) -> Output {
        variable.handle().seen_from(&self.scope)
    }

    /// The slot variable of this name for `variable`: it has the same shape, is filled with `first` initially, and is
    /// called `<variable>/<optimizer>`.
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
        let builder = Variable::builder(&scope, name).dtype(variable.dtype()).kind(variable.kind()).trainable(false);
        let builder = builder.slot_of(variable);
        let made = match variable.shape().known() {
            Some(shape) => builder.shape(shape).initializer(Initializer::Constant(first)).build(),
            None => {
                let like = variable.initial_value().seen_from(&scope);
                let number = like.like(first);
                builder.value(&ops::raw::fill(&like.dims(), &number).output()).build()
            }
        };
        self.slots.lock().insert(key, made.clone());
        made
    }

    /// One float that all variables share, whatever their type; colocated with `first`.
    pub fn shared(&self, first: &Variable, name: &str, value: f64) -> Variable {
        let key = (String::new(), name.to_string());
        if let Some(known) = self.slots.lock().get(&key) {
            return known.clone();
        }
        let scope = self.root.beside(first.handle().node());
        let builder = Variable::builder(&scope, name).dtype(DType::F32).kind(first.kind()).trainable(false);
        let made = builder.initializer(Initializer::Constant(value)).build();
        self.slots.lock().insert(key, made.clone());
        made
    }

    /// The step counter, if there is one.
    pub fn step(&self) -> Option<&Variable> {
        self.step
    }
}
