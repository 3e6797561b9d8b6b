//! What a saver saves under names in the checkpoint: variables, parts of variables, and states of iterators.

use graph::Output;
use input::DatasetIterator;
use layers::{Kind, Variable};
use status::{Result, invalid};
use std::collections::{BTreeMap, BTreeSet};
use tensor::DType;

/// A variable, a part of one, or the state of an iterator, as a checkpoint holds it.
pub(crate) struct Saveable {
    /// The name in the checkpoint.
    pub key: String,
    /// The part of that entry that it is; empty for the whole.
    pub slice: String,
    /// Where the value is.
    pub source: Source,
    /// The device of the source.
    pub device: String,
}

/// What has a value that is saved.
pub(crate) enum Source {
    Variable(Variable),
    /// An iterator with the output that is its state.
    Iterator(DatasetIterator, Output),
}

impl Saveable {
    /// The tensor that is written.
    pub fn value(&self) -> Output {
        match &self.source {
            Source::Variable(variable) if variable.kind() == Kind::Resource => variable.value().clone(),
            Source::Variable(variable) => variable.handle().clone(),
            Source::Iterator(_, state) => state.clone(),
        }
    }

    /// The type of the tensor that is written.
    pub fn dtype(&self) -> DType {
        match &self.source {
            Source::Variable(variable) => variable.dtype(),
            Source::Iterator(..) => DType::VARIANT,
        }
    }

    /// The size in bytes; zero if the shape is unknown, as that of states is.
    pub fn size(&self) -> u64 {
        match &self.source {
            Source::Variable(variable) => {
                let size = |shape: tensor::Shape| (shape.elements() * variable.dtype().size()) as u64;
                variable.shape().known().map_or(0, size)
            }
            Source::Iterator(..) => 0,
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
    let mut seen = BTreeSet::new();
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
                source: Source::Variable(variable.clone()),
                device: variable.handle().node().device(),
            });
        }
    }
    Ok(saveables)
}

/// The states of these iterators, in order of their names.
pub(crate) fn iterator_states(iterators: &[DatasetIterator]) -> Result<Vec<Saveable>> {
    let mut saveables = BTreeMap::new();
    for iterator in iterators {
        let (key, state) = (iterator.state_name(), iterator.state());
        let device = iterator.handle().node().device();
        let source = Source::Iterator(iterator.clone(), state);
        let saveable = Saveable { key: key.clone(), slice: String::new(), source, device };
        if saveables.insert(key, saveable).is_some() {
            return Err(invalid!("The same iterator is saved twice: {}", iterator.handle().name()));
        }
    }
    Ok(saveables.into_values().collect())
}
