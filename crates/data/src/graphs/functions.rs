//! The functions that nodes use, directly and through each other.

use graph::{AttrValue, FunctionDef, FunctionLibrary, NodeDef};
use status::{Result, invalid};
use std::sync::Arc;

/// The names of the functions in the attributes of a node, and in the attributes of those functions.
pub fn functions_of(node: &NodeDef) -> Vec<&str> {
    let mut names = Vec::new();
    let mut values: Vec<&AttrValue> = node.attrs.values().collect();
    while let Some(value) = values.pop() {
        let functions = match value {
            AttrValue::Func(function) => std::slice::from_ref(function),
            AttrValue::List(list) => &list.funcs[..],
            _ => continue,
        };
        for function in functions {
            names.push(function.name.as_str());
            values.extend(function.attrs.values());
        }
    }
    names
}

/// Adds the functions that a node uses, and those that these use, to a library.
pub fn add_functions(into: &mut FunctionLibrary, node: &NodeDef, all: &FunctionLibrary) -> Result<()> {
    let mut waiting = functions_of(node);
    while let Some(name) = waiting.pop() {
        let Some(def) = all.functions.get(name) else {
            return Err(invalid!("Unable to find FunctionDef for {name} in the registry."));
        };
        match into.functions.get(name) {
            Some(present) if Arc::ptr_eq(present, def) || present == def => continue,
            Some(_) => {
                return Err(invalid!(
                    "Cannot add function '{name}' because a different function with the same name already exists."
                ));
            }
            None => into.functions.insert(name.to_string(), def.clone()),
        };
        if let Some(gradient) = all.gradients.get(name) {
            into.gradients.insert(name.to_string(), gradient.clone());
            waiting.extend(all.functions.contains_key(gradient).then_some(gradient.as_str()));
        }
        waiting.extend(used_by(def, all));
    }
    Ok(())
}

fn used_by<'a>(def: &'a FunctionDef, all: &'a FunctionLibrary) -> impl Iterator<Item = &'a str> {
    def.nodes.iter().flat_map(|node| {
        let called = all.functions.contains_key(&node.op).then_some(node.op.as_str());
        functions_of(node).into_iter().chain(called)
    })
}
