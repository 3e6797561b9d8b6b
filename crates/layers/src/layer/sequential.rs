//! Layers one after another.

use super::{Layer, Phase};
use crate::VariableScope;
use graph::Output;
use std::collections::HashMap;

/// A model whose layers are applied one after another.
///
/// The variables of a layer are in a scope of their own. It is called by the name that the layer was added with, else
/// by its kind and, from the second of a kind on, a number: `dense`, `dense_1`, `conv2d`.
#[derive(Default)]
pub struct Sequential {
    layers: Vec<(Option<String>, Box<dyn Layer + Send + Sync>)>,
}

impl Sequential {
    /// A model without layers, which gives its input.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Adds a layer at the end.
    #[allow(clippy::should_implement_trait)] // called as in Keras; there is no sum of models
    pub fn add(mut self, layer: impl Layer + Send + Sync + 'static) -> Sequential {
        self.layers.push((None, Box::new(layer)));
        self
    }

    /// Adds a layer at the end, whose variables are in a scope of this name.
    pub fn add_named(mut self, name: &str, layer: impl Layer + Send + Sync + 'static) -> Sequential {
        self.layers.push((Some(name.to_string()), Box::new(layer)));
        self
    }

    /// Applies the model to `x` as it is trained.
    pub fn apply(&self, variables: &VariableScope, x: &Output) -> Output {
        self.forward(variables, x, Phase::Training)
    }
}

impl Layer for Sequential {
    fn forward(&self, variables: &VariableScope, x: &Output, phase: Phase) -> Output {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let mut value = x.seen_from(variables.scope());
        for (name, layer) in &self.layers {
            let kind = layer.default_name();
            let name = name.clone().unwrap_or_else(|| numbered(kind, counts.entry(kind).or_default()));
            value = layer.forward(&variables.enter(&name), &value, phase);
        }
        value.seen_from(variables.scope())
    }

    fn default_name(&self) -> &str {
        "sequential"
    }
}

/// The name of the next layer of a kind, of which there were `count` so far.
fn numbered(kind: &str, count: &mut usize) -> String {
    let number = std::mem::replace(count, *count + 1);
    if number == 0 { kind.to_string() } else { format!("{kind}_{number}") }
}
