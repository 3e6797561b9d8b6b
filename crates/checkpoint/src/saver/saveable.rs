//! What a saver saves: variables and parts of variables, under their names in the checkpoint.

use graph::Output;
use layers::{Kind, Variable};
use status::{Result, invalid};
use std::collections::BTreeMap;

/// A variable, or a part of one, as a checkpoint holds it.
pub(crate) struct Saveable {
    /// The name in the checkpoint.
    pub key: String,
    /// The part of that entry that it is; empty for the whole.
    pub slice: String,
    /// The variable.
    pub variable: Variable,
    /// The device of the variable.
    pub device: String,
}

impl Saveable {
    /// The tensor that is written.
    pub fn value(&self) -> Output {
        match self.variable.kind() {
            Kind::Resource => self.variable.value().clone(),
            Kind::Reference => self.variable.handle().clone(),
        }
    }
}

/// The name of a variable in checkpoints: its own, or that of the larger variable it is a part of.
pub(crate) fn key(variable: &Variable) -> String {
    variable.slice().map_or_else(|| variable.name(), |slice| slice.full_name.clone())
}

/// These variables under these names, in order of the names. Several variables may have the same name if they
/// are parts of one.
pub(crate) fn saveables(variables: &[(String, Variable)]) -> Result<Vec<Saveable>> {
    let mut by_key: BTreeMap<&str, Vec<&Variable>> = BTreeMap::new();
    for (key, variable) in variables {
        by_key.entry(key).or_default().push(variable);
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut saveables = Vec::with_capacity(variables.len());
    for (key, variables) in by_key {
        if variables.len() > 1 && variables.iter().any(|variable| variable.slice().is_none()) {
            return Err(invalid!("At least two variables have the same name: {key}"));
        }
        for variable in variables {
            if !seen.insert(variable.name()) {
                return Err(invalid!("The same saveable will be restored with two names: {}", variable.name()));
            }
            saveables.push(Saveable {
                key: key.to_string(),
                slice: variable.slice().map_or(String::new(), |slice| slice.spec()),
                variable: variable.clone(),
                device: variable.handle().node().device(),
            });
        }
    }
    Ok(saveables)
}
