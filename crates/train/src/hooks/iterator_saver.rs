//! Begins, saves and continues the input pipeline of a worker.

use super::{Every, Timer, read_step, stale_step, step_of};
use crate::monitored::{RunArgs, RunContext, RunValues, SessionContext, SessionRunHook};
use checkpoint::saver::{SaveOptions, Saver};
use graph::{DeviceSpec, Graph, Node, Output};
use input::DatasetIterator;
use io::fs::path::{join, to_str};
use io::{CheckpointState, FileSystems};
use session::Session;
use status::Result;
use std::path::{Path, PathBuf};

/// Begins iterators with the session. With checkpoints, it also saves their states at an interval and at the end, and
/// continues from there when training starts again: each element is seen once.
///
/// Every worker saves its own iterators, in checkpoints named after its task. A worker that continues takes the state that
/// was saved at the step of the model, or the newest one if there is none.
pub struct IteratorSaver {
    iterators: Vec<DatasetIterator>,
    checkpoints: Option<Checkpoints>,
    nodes: Option<Nodes>,
    /// Whether an earlier session began the iterators.
    begun: bool,
}

/// Where and when states are saved.
struct Checkpoints {
    folder: PathBuf,
    timer: Timer,
    systems: FileSystems,
}

/// What the hook adds to the graph and finds there.
struct Nodes {
    saver: Saver,
    states: Vec<Node>,
    counter: Output,
}

impl IteratorSaver {
    /// Begins these iterators, which are on one task, and saves nothing.
    pub fn new<'a>(iterators: impl IntoIterator<Item = &'a DatasetIterator>) -> IteratorSaver {
        let iterators = iterators.into_iter().cloned().collect();
        IteratorSaver { iterators, checkpoints: None, nodes: None, begun: false }
    }

    /// Saves the states to a folder at an interval.
    pub fn checkpoints(self, folder: impl AsRef<Path>, every: Every) -> IteratorSaver {
        self.checkpoints_on(&FileSystems::local(), folder, every)
    }

    /// As `checkpoints`, in a folder of these file systems.
    pub fn checkpoints_on(mut self, systems: &FileSystems, folder: impl AsRef<Path>, every: Every) -> IteratorSaver {
        let (folder, timer) = (folder.as_ref().to_path_buf(), Timer::new(every));
        self.checkpoints = Some(Checkpoints { folder, timer, systems: systems.clone() });
        self
    }

    /// The base name of the checkpoints: `input_worker_1` on task 1 of job worker.
    fn name(&self) -> String {
        let device = self.iterators.first().map(|iterator| iterator.handle().node().device());
        let device = DeviceSpec::parse(&device.unwrap_or_default()).unwrap_or_default();
        let parts = [device.job, device.task.map(|task| task.to_string())];
        parts.into_iter().flatten().fold("input".to_string(), |name, part| format!("{name}_{part}"))
    }

    fn list(&self) -> String {
        format!("checkpoint_{}", self.name())
    }

    /// The checkpoint of this step, or the newest one.
    fn saved(&self, step: i64) -> Result<Option<String>> {
        let (Some(checkpoints), Some(nodes)) = (&self.checkpoints, &self.nodes) else { return Ok(None) };
        let state = CheckpointState::read(&checkpoints.systems, to_str(&checkpoints.folder)?, &self.list())?;
        let Some(state) = state else { return Ok(None) };
        nodes.saver.recover_last_checkpoints(&state.all_model_checkpoint_paths)?;
        let of_step = format!("-{step}");
        let same = state.all_model_checkpoint_paths.iter().find(|path| path.ends_with(&of_step)).cloned();
        Ok(same.or(Some(state.model_checkpoint_path)))
    }

    fn save(&mut self, session: &Session, step: i64) -> Result<()> {
        let (name, latest_filename) = (format!("{}.ckpt", self.name()), self.list());
        let (Some(checkpoints), Some(nodes)) = (&mut self.checkpoints, &self.nodes) else { return Ok(()) };
        let folder = to_str(&checkpoints.folder)?;
        checkpoints.systems.create_dirs(folder)?;
        let options = SaveOptions { latest_filename, write_meta_graph: false, ..SaveOptions::default() };
        nodes.saver.save_with(session, join(folder, &name), step, &options)?;
        checkpoints.timer.done(step);
        Ok(())
    }
}

impl SessionRunHook for IteratorSaver {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        let Some(checkpoints) = &self.checkpoints else { return Ok(()) };
        let saver = Saver::builder(graph).name("save_input").variables([]).iterators(&self.iterators).sharded(true);
        let saver = saver.file_systems(&checkpoints.systems).build()?;
        let states = self.iterators.iter().map(|iterator| iterator.state().node().clone()).collect();
        self.nodes = Some(Nodes { saver, states, counter: step_of(graph, "IteratorSaver")? });
        Ok(())
    }

    fn after_create_session(&mut self, context: &SessionContext<'_>) -> Result<()> {
        let session = context.session();
        let was_begun = std::mem::replace(&mut self.begun, true);
        let step = match &self.nodes {
            // Only another task was lost: the iterators of this one are still there.
            Some(nodes) if was_begun && session.execute(&nodes.states[..]).is_ok() => return Ok(()),
            Some(nodes) => read_step(session, &nodes.counter)?,
            None => 0,
        };
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.timer.done(step);
        }
        match (self.saved(step)?, &self.nodes) {
            (Some(path), Some(nodes)) => nodes.saver.restore(session, path),
            _ => {
                let initializers = self.iterators.iter().filter_map(DatasetIterator::initializer);
                session.execute(initializers.collect::<Vec<&Node>>())
            }
        }
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        Ok(self.nodes.as_ref().map_or_else(RunArgs::nothing, |nodes| RunArgs::fetch(&nodes.counter)))
    }

    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        let (Some(checkpoints), Some(nodes)) = (&self.checkpoints, &self.nodes) else { return Ok(()) };
        if !checkpoints.timer.is_due(stale_step(values)? + 1) {
            return Ok(());
        }
        let step = read_step(context.session(), &nodes.counter)?;
        if checkpoints.timer.is_due(step) { self.save(context.session(), step) } else { Ok(()) }
    }

    fn end(&mut self, session: &Session) -> Result<()> {
        let Some(nodes) = &self.nodes else { return Ok(()) };
        let step = read_step(session, &nodes.counter)?;
        self.save(session, step)
    }
}
