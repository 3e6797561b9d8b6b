//! A saver in the making.

use super::progress::{Progress, ProgressFn, Watcher};
use super::saveable::{Saveable, key, saveables};
use super::{Saver, build};
use graph::Graph;
use io::FileSystems;
use io::saved_model::Saver as SaverDef;
use layers::Variable;
use layers::collection::{SAVEABLE_OBJECTS, global_variables, variables};
use status::{Result, invalid};
use std::sync::Arc;

/// A saver in the making; of all variables under their own names, in one file, keeping five, unless said
/// otherwise.
pub struct SaverBuilder {
    graph: Graph,
    variables: Option<Vec<(String, Variable)>>,
    name: String,
    sharded: bool,
    max_to_keep: i32,
    every_n_hours: f32,
    allow_empty: bool,
    relative: bool,
    padded: bool,
    systems: FileSystems,
    tell: Option<ProgressFn>,
}

impl SaverBuilder {
    pub(super) fn new(graph: &Graph) -> SaverBuilder {
        SaverBuilder {
            graph: graph.clone(),
            variables: None,
            name: "save".to_string(),
            sharded: false,
            max_to_keep: 5,
            every_n_hours: 10_000.0,
            allow_empty: false,
            relative: false,
            padded: false,
            systems: FileSystems::local(),
            tell: None,
        }
    }

    /// These variables only.
    pub fn variables<'a>(mut self, variables: impl IntoIterator<Item = &'a Variable>) -> SaverBuilder {
        self.variables = Some(variables.into_iter().map(|variable| (key(variable), variable.clone())).collect());
        self
    }

    /// These variables only, under these names.
    pub fn named_variables<'a>(mut self, variables: impl IntoIterator<Item = (&'a str, &'a Variable)>) -> SaverBuilder {
        let named = |(name, variable): (&str, &Variable)| (name.to_string(), variable.clone());
        self.variables = Some(variables.into_iter().map(named).collect());
        self
    }

    /// What goes before the names of its nodes.
    pub fn name(mut self, name: &str) -> SaverBuilder {
        self.name = name.to_string();
        self
    }

    /// Whether every device writes a file of its own.
    pub fn sharded(mut self, sharded: bool) -> SaverBuilder {
        self.sharded = sharded;
        self
    }

    /// How many checkpoints are kept; zero for all.
    pub fn max_to_keep(mut self, count: usize) -> SaverBuilder {
        self.max_to_keep = i32::try_from(count).unwrap_or(i32::MAX);
        self
    }

    /// How often one is kept for good.
    pub fn keep_checkpoint_every_n_hours(mut self, hours: f32) -> SaverBuilder {
        self.every_n_hours = hours;
        self
    }

    /// Whether there need not be any variable.
    pub fn allow_empty(mut self, allow: bool) -> SaverBuilder {
        self.allow_empty = allow;
        self
    }

    /// Whether the file that lists the checkpoints names them relative to itself, so that the folder can be moved.
    pub fn relative_paths(mut self, relative: bool) -> SaverBuilder {
        self.relative = relative;
        self
    }

    /// Whether steps in names have at least eight digits, so that names are in order.
    pub fn pad_step_number(mut self, padded: bool) -> SaverBuilder {
        self.padded = padded;
        self
    }

    /// Where the list of checkpoints is written, and checkpoints are deleted.
    pub fn file_systems(mut self, systems: &FileSystems) -> SaverBuilder {
        self.systems = systems.clone();
        self
    }

    /// Tells how far saves and restores are: at the beginning, ten times a second, and at the end. Tasks of TensorFlow
    /// do not say how far they are in between.
    pub fn progress(self, tell: impl Fn(Progress) + Send + Sync + 'static) -> SaverBuilder {
        self.tell(Arc::new(tell))
    }

    pub(super) fn tell(mut self, tell: ProgressFn) -> SaverBuilder {
        self.tell = Some(tell);
        self
    }

    /// Adds its nodes to the graph.
    pub fn make(self) -> Result<Saver> {
        self.graph.check()?;
        let chosen = self.variables.clone().unwrap_or_else(|| {
            let mut all = global_variables(&self.graph);
            all.extend(variables(&self.graph, SAVEABLE_OBJECTS));
            all.iter().map(|variable| (key(variable), variable.clone())).collect()
        });
        let (def, watcher) = match (chosen.is_empty(), self.allow_empty) {
            (true, false) => return Err(invalid!("No variables to save")),
            (true, true) => (SaverDef { sharded: self.sharded, version: 2, ..SaverDef::default() }, None),
            (false, _) => self.build(&saveables(&chosen)?)?,
        };
        self.graph.check()?;
        let (max_to_keep, keep_checkpoint_every_n_hours) = (self.max_to_keep, self.every_n_hours);
        let def = SaverDef { max_to_keep, keep_checkpoint_every_n_hours, ..def };
        Ok(Saver { watcher, ..Saver::over(&self.graph, def, self.systems, self.relative, self.padded) })
    }

    fn build(&self, saveables: &[Saveable]) -> Result<(SaverDef, Option<Watcher>)> {
        let (scope, first) = (self.graph.root().named(&self.name), self.graph.len());
        let def = build::build(&scope, saveables, self.sharded)?;
        let watcher = self.tell.clone().map(|tell| Watcher::build(&scope, first, saveables, tell));
        Ok((def, watcher))
    }
}
