//! The variable that an op works on, behind a reference or a handle.

use op::{Home, Inputs, Outputs, Setup, Value, Variable, handle_of, outputs};
use status::Result;
use std::sync::Arc;
use tensor::DType;

/// How a node names the variables it works on.
#[derive(Clone)]
pub(crate) enum Target {
    /// The variables are references; the first one is returned.
    Ref,
    /// The variables are behind handles of this device; nothing is returned.
    Handle(Home),
}

impl Target {
    /// How this node identifies its variable; the type of its first input determines it.
    pub fn of(setup: &Setup<'_>) -> Target {
        match setup.input_types().first() {
            Some(&DType::RESOURCE) => Target::Handle(Home::of(setup)),
            _ => Target::Ref,
        }
    }

    /// Takes input `index`, which identifies a variable.
    pub fn take(&self, inputs: &mut Inputs, index: usize) -> Result<Arc<Variable>> {
        match self {
            Target::Ref => inputs.variable(index),
            Target::Handle(home) => home.find(handle_of(&inputs.tensor(index)?)?),
        }
    }

    /// The outputs of the node.
    pub fn outputs(&self, variable: Arc<Variable>) -> Outputs {
        match self {
            Target::Ref => outputs![Value::Ref(variable)],
            Target::Handle(_) => outputs![],
        }
    }

    /// Whether variables are named by references.
    pub fn is_ref(&self) -> bool {
        matches!(self, Target::Ref)
    }
}
