//! Options of a training step.

use layers::Variable;

/// What an optimizer updates and counts: `MinimizeOptions::new().step(&step)`.
#[derive(Clone, Default)]
pub struct MinimizeOptions {
    pub(crate) step: Option<Variable>,
    pub(crate) variables: Option<Vec<Variable>>,
}

impl MinimizeOptions {
    /// All trainable variables, without a step counter.
    pub fn new() -> MinimizeOptions {
        MinimizeOptions::default()
    }

    /// Adds one to this step counter after every update.
    pub fn step(mut self, step: &Variable) -> MinimizeOptions {
        self.step = Some(step.clone());
        self
    }

    /// The step counter, if one is set.
    pub fn step_counter(&self) -> Option<&Variable> {
        self.step.as_ref()
    }

    /// Updates these variables only.
    pub fn variables<'a>(mut self, variables: impl IntoIterator<Item = &'a Variable>) -> MinimizeOptions {
        self.variables = Some(variables.into_iter().cloned().collect());
        self
    }
}
