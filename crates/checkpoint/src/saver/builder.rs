//! Settings of a new saver.

use super::progress::{Progress, ProgressFn, ProgressReporter};
use super::saveable::{Saveable, iterator_states, key, saveables};
use super::{Saver, build};
use graph::Graph;
use input::DatasetIterator;
use io::FileSystems;
use io::saved_model::Saver as SaverDef;
use layers::Variable;
use layers::collection::{SAVEABLE_OBJECTS, global_variables, variables};
use status::{Result, invalid};
use std::sync::Arc;

/// The settings of a new saver. By default it saves all variables under their own names to one file, and keeps five
/// checkpoints.
pub struct SaverBuilder {
    graph: Graph,
    variables: Option<Vec<(String, Variable)>>,
    iterators: Vec<DatasetIterator>,
    name: String,
    sharded: bool,
    max_to_keep: i32,
    every_n_hours: f32,
    allow_empty: bool,
    relative: bool,
    padded: bool,
    systems: FileSystems,
    report: Option<ProgressFn>,
}

impl SaverBuilder {
    pub(super) fn new(graph: &Graph) -> SaverBuilder {
        SaverBuilder {
            graph: graph.clone(),
            variables: None,
            iterators: Vec::new(),
            name: "save".to_string(),
            sharded: false,
            max_to_keep: 5,
            every_n_hours: 10_000.0,
            allow_empty: false,
            relative: false,
            padded: false,
            systems: FileSystems::local(),
            report: None,
        }
    }

    /// Saves these variables only.
    pub fn variables<'a>(mut self, variables: impl IntoIterator<Item = &'a Variable>) -> SaverBuilder {
        self.variables = Some(variables.into_iter().map(|variable| (key(variable), variable.clone())).collect());
        self
    }

    /// Saves these variables only, under these names.
    pub fn named_variables<'a>(mut self, variables: impl IntoIterator<Item = (&'a str, &'a Variable)>) -> SaverBuilder {
        let named = |(name, variable): (&str, &Variable)| (name.to_string(), variable.clone());
        self.variables = Some(variables.into_iter().map(named).collect());
        self
    }

    /// Saves the states of these iterators, too, in the form of Python's `make_saveable_from_iterator`: a pipeline that is
    /// restored continues at its element. A restored iterator is initialized first, unless that depends on placeholders.
    ///
    /// ```
    /// use flowgrid_checkpoint::Saver;
    /// use graph::{Graph, Output};
    /// use input::Dataset;
    /// use session::Session;
    ///
    /// # let folder = std::env::temp_dir().join(format!("flowgrid-doc-iterators-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// let graph = Graph::with_ops(data::registry());
    /// let iterator = Dataset::range(&graph.root(), 0..9).make_initializable_iterator();
    /// let next: Output = iterator.next()?;
    /// let saver = Saver::builder(&graph).iterators([&iterator]).build()?;
    ///
    /// let session = Session::local(&graph);
    /// session.execute(iterator.initializer().expect("it is initializable"))?;
    /// assert_eq!(session.run::<i64>(&next)?, 0);
    /// let path = saver.save(&session, folder.join("state"), 1)?;
    ///
    /// let session = Session::local(&graph);
    /// saver.restore(&session, &path)?;
    /// assert_eq!(session.run::<i64>(&next)?, 1);
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), status::Error>(())
    /// ```
    pub fn iterators<'a>(mut self, iterators: impl IntoIterator<Item = &'a DatasetIterator>) -> SaverBuilder {
        self.iterators.extend(iterators.into_iter().cloned());
        self
    }

    /// Sets the prefix of the names of its nodes.
    pub fn name(mut self, name: &str) -> SaverBuilder {
        self.name = name.to_string();
        self
    }

    /// Sets whether every device writes a file of its own.
    pub fn sharded(mut self, sharded: bool) -> SaverBuilder {
        self.sharded = sharded;
        self
    }

    /// Sets how many checkpoints are kept; zero for all.
    pub fn max_to_keep(mut self, count: usize) -> SaverBuilder {
        self.max_to_keep = i32::try_from(count).unwrap_or(i32::MAX);
        self
    }

    /// Sets how often a checkpoint is kept permanently.
    pub fn keep_checkpoint_every_n_hours(mut self, hours: f32) -> SaverBuilder {
        self.every_n_hours = hours;
        self
    }

    /// Sets whether a graph without variables is accepted.
    pub fn allow_empty(mut self, allow: bool) -> SaverBuilder {
        self.allow_empty = allow;
        self
    }

    /// Sets whether the file that lists the checkpoints has paths relative to itself, so that the folder can be moved.
    pub fn relative_paths(mut self, relative: bool) -> SaverBuilder {
        self.relative = relative;
        self
    }

    /// Sets whether steps in names have at least eight digits, so that names sort by step.
    pub fn pad_step_number(mut self, padded: bool) -> SaverBuilder {
        self.padded = padded;
        self
    }

    /// Sets the file systems on which the list of checkpoints is written and old checkpoints are deleted.
    pub fn file_systems(mut self, systems: &FileSystems) -> SaverBuilder {
        self.systems = systems.clone();
        self
    }

    /// Reports the progress of saves and restores: at the beginning, ten times a second, and at the end. Tasks of
    /// TensorFlow do not report anything in between.
    pub fn progress(self, report: impl Fn(Progress) + Send + Sync + 'static) -> SaverBuilder {
        self.progress_fn(Arc::new(report))
    }

    pub(super) fn progress_fn(mut self, report: ProgressFn) -> SaverBuilder {
        self.report = Some(report);
        self
    }

    /// Adds the nodes of the saver to the graph.
    pub fn build(self) -> Result<Saver> {
        self.graph.check()?;
        let chosen = self.variables.clone().unwrap_or_else(|| {
            let mut all = global_variables(&self.graph);
            all.extend(variables(&self.graph, SAVEABLE_OBJECTS));
            all.iter().map(|variable| (key(variable), variable.clone())).collect()
        });
        let (def, progress) = match (chosen.is_empty() && self.iterators.is_empty(), self.allow_empty) {
            (true, false) => return Err(invalid!("No variables to save")),
            (true, true) => (SaverDef { sharded: self.sharded, version: 2, ..SaverDef::default() }, None),
            (false, _) => {
                let mut all = saveables(&chosen)?;
                all.extend(iterator_states(&self.iterators)?);
                all.sort_by(|a, b| a.key.cmp(&b.key));
                self.add_nodes(&all)?
            }
        };
        self.graph.check()?;
        let (max_to_keep, keep_checkpoint_every_n_hours) = (self.max_to_keep, self.every_n_hours);
        let def = SaverDef { max_to_keep, keep_checkpoint_every_n_hours, ..def };
        Ok(Saver { progress, ..Saver::over(&self.graph, def, self.systems, self.relative, self.padded) })
    }

    fn add_nodes(&self, saveables: &[Saveable]) -> Result<(SaverDef, Option<ProgressReporter>)> {
        let (scope, first) = (self.graph.root().named(&self.name), self.graph.len());
        let def = build::build(&scope, saveables, self.sharded)?;
        let report = self.report.clone();
        let progress = report.map(|report| ProgressReporter::build(&scope, first, saveables, report));
        Ok((def, progress))
    }
}
