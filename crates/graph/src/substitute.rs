//! Substitution: nodes in the body of a function get the attributes of the call.

use crate::{AttrValue, Function, NodeDef};
use status::{Result, exhausted};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The deepest nesting of functions in an attribute, on the wire and after substitution; bounds all recursion over
/// attributes.
pub(crate) const MAX_DEPTH: usize = 32;

/// The most functions in an attribute after substitution. A function that passes its attribute on twice would otherwise
/// double it with every call.
const MAX_FUNCTIONS: usize = 4096;

impl NodeDef {
    /// This node of a function's body, with the attributes of a call of the function in the place of their names. Fails
    /// if functions in an attribute nest too deep or are too many.
    pub fn with_attrs_of(&self, call: &Function) -> Result<NodeDef> {
        let mut node = self.clone();
        for (name, value) in &mut node.attrs {
            substitute(value, &call.attrs);
            let mut rest = MAX_FUNCTIONS;
            if !fits(value, 0, &mut rest) {
                return Err(exhausted!(
                    "In function {}, attribute '{name}' of node '{}' has functions that nest deeper than {MAX_DEPTH}, or \
                     more than {MAX_FUNCTIONS} of them",
                    call.name,
                    self.name
                ));
            }
        }
        Ok(node)
    }
}

/// The attributes of a body were bounded when they were read, and those of the call when they were substituted, so the
/// recursion is bounded too.
fn substitute(value: &mut AttrValue, attrs: &BTreeMap<String, AttrValue>) {
    match value {
        AttrValue::Placeholder(name) => {
            if let Some(given) = attrs.get(name) {
                *value = given.clone();
            }
        }
        AttrValue::Func(function) => substitute_inside(function, attrs),
        AttrValue::List(list) => list.funcs.iter_mut().for_each(|function| substitute_inside(function, attrs)),
        _ => {}
    }
}

fn substitute_inside(function: &mut Arc<Function>, attrs: &BTreeMap<String, AttrValue>) {
    if !function.attrs.is_empty() {
        let inner = Arc::make_mut(function);
        inner.attrs.values_mut().for_each(|value| substitute(value, attrs));
    }
}

/// Whether the functions in a value stay within the limits; `rest` is how many more there may be.
fn fits(value: &AttrValue, depth: usize, rest: &mut usize) -> bool {
    let functions = match value {
        AttrValue::Func(function) => std::slice::from_ref(function),
        AttrValue::List(list) => &list.funcs[..],
        _ => return true,
    };
    functions.iter().all(|function| {
        *rest = rest.saturating_sub(1);
        *rest > 0 && depth < MAX_DEPTH && function.attrs.values().all(|value| fits(value, depth + 1, rest))
    })
}
