//! Checkpoints of variables: the nodes that write and read them, and which files are kept.

mod build;
mod builder;
mod progress;
mod retention;
mod saveable;
mod snapshot;

pub use builder::SaverBuilder;
pub use progress::{Progress, ProgressFn, log_progress};
pub(crate) use retention::Retention;

use crate::meta_graph::{self, ExportOptions};
use crate::step_number;
use graph::{AttrValue, Function, Graph, Output};
use io::fs::path::to_str;
use io::saved_model::Saver as SaverDef;
use io::state::{STATE_FILE, checkpoint_exists};
use io::{Bundle, CheckpointState, FileSystems};
use parking_lot::Mutex;
use progress::{Operation, ProgressReporter};
use session::{Feeds, Session};
use status::{Code, Error, Result, invalid};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};
use tensor::Tensor;

/// The collection in which savers are found.
pub use layers::collection::SAVERS;

/// Writes the variables of a graph to checkpoints, reads them back, and deletes old checkpoints.
///
/// The tasks that hold the variables write and read the data files. This process writes the file that lists the
/// checkpoints, and deletes old ones.
pub struct Saver {
    graph: Graph,
    def: SaverDef,
    systems: FileSystems,
    relative: bool,
    padded: bool,
    retention: Mutex<Retention>,
    progress: Option<ProgressReporter>,
    /// A tensor that is available once all variables were read; none if that cannot be told.
    snapshot: OnceLock<Option<Output>>,
}

/// What a save does besides writing variables.
#[derive(Clone, Debug)]
pub struct SaveOptions {
    /// The file that lists the checkpoints.
    pub latest_filename: String,
    /// Whether that file is written.
    pub write_state: bool,
    /// Whether the graph is written beside the checkpoint.
    pub write_meta_graph: bool,
    /// The suffix of that file.
    pub meta_graph_suffix: String,
}

impl Default for SaveOptions {
    fn default() -> SaveOptions {
        SaveOptions {
            latest_filename: STATE_FILE.to_string(),
            write_state: true,
            write_meta_graph: true,
            meta_graph_suffix: "meta".to_string(),
        }
    }
}

impl Saver {
    /// A saver of all variables of a graph, which keeps the newest five checkpoints.
    pub fn new(graph: &Graph) -> Result<Saver> {
        Saver::builder(graph).build()
    }

    /// The settings of a new saver.
    pub fn builder(graph: &Graph) -> SaverBuilder {
        SaverBuilder::new(graph)
    }

    /// A saver whose nodes are already in the graph.
    pub fn from_def(graph: &Graph, def: SaverDef) -> Saver {
        Saver::over(graph, def, FileSystems::local(), false, false)
    }

    /// The same with files on these file systems. Those of the nodes are the server's.
    pub fn with_file_systems(mut self, systems: &FileSystems) -> Saver {
        self.systems = systems.clone();
        self
    }

    pub(crate) fn over(graph: &Graph, def: SaverDef, systems: FileSystems, relative: bool, padded: bool) -> Saver {
        let most = usize::try_from(def.max_to_keep).unwrap_or(0);
        let every = f64::from(def.keep_checkpoint_every_n_hours) * 3600.0;
        let (graph, retention) = (graph.clone(), Mutex::new(Retention::new(most, every, now())));
        Saver { graph, def, systems, relative, padded, retention, progress: None, snapshot: OnceLock::new() }
    }

    /// The first saver in the graph's collection of savers. If there is none, a new sharded one of all variables,
    /// which is added to the collection and logs its progress.
    pub fn of_graph(graph: &Graph) -> Result<Saver> {
        Saver::of_graph_with_progress(graph, log_progress())
    }

    /// The same; a new saver reports its progress to `report`.
    pub fn of_graph_with_progress(graph: &Graph, report: ProgressFn) -> Result<Saver> {
        if let Some(def) = defs(graph).into_iter().next() {
            return Ok(Saver::from_def(graph, def));
        }
        let saver = Saver::builder(graph).sharded(true).allow_empty(true).progress_fn(report).build()?;
        graph.add_to_collection(SAVERS, saver.to_record());
        Ok(saver)
    }

    /// The names of the nodes, and how many checkpoints are kept.
    pub fn def(&self) -> &SaverDef {
        &self.def
    }

    /// Whether there is nothing to save.
    pub fn is_empty(&self) -> bool {
        self.def.save_tensor.is_empty()
    }

    /// Writes a checkpoint called `path`, or `path-step` with a step; gives its name.
    pub fn save(&self, session: &Session, path: impl AsRef<Path>, step: impl Into<Option<i64>>) -> Result<String> {
        self.save_with(session, path, step, &SaveOptions::default())
    }

    /// As [`Saver::save`], with options.
    pub fn save_with(
        &self,
        session: &Session,
        path: impl AsRef<Path>,
        step: impl Into<Option<i64>>,
        options: &SaveOptions,
    ) -> Result<String> {
        let (path, step) = (to_str(path.as_ref())?, step.into());
        self.check_names(path, step, options)?;
        self.save_by(session, path, step, options, |feeds| session.run_with(self.def.save_tensor.as_str(), feeds))
    }

    /// As [`Saver::save_with`], while training steps continue. The step in the name is the value of `counter` when
    /// the variables are read. `read` is called with that step as soon as all variables were read: later steps do not
    /// change what is written. Where that moment is unknown (see [`Saver::prepare_snapshots`]), `read` is called at
    /// the end.
    pub fn save_snapshot(
        &self,
        session: &Session,
        path: impl AsRef<Path>,
        counter: &Output,
        options: &SaveOptions,
        read: impl FnOnce(i64),
    ) -> Result<String> {
        let path = to_str(path.as_ref())?;
        let filename = snapshot::output(&self.graph, &self.def.filename_tensor);
        let (Some(snapshot), Some(filename)) = (self.snapshot.get().and_then(Option::as_ref), filename) else {
            let step = step_number(&session.run::<Tensor>(counter)?)?;
            let written = self.save_with(session, path, step, options)?;
            read(step);
            return Ok(written);
        };
        self.check_names(path, Some(0), options)?;
        let save = self.def.save_tensor.as_str();
        let step = session.partial_run((snapshot, counter, save), &[&filename])?;
        let (_, number): (Tensor, Tensor) = step.run((snapshot, counter))?;
        let number = step_number(&number)?;
        read(number);
        self.save_by(session, path, Some(number), options, |feeds| step.run_with(save, feeds))
    }

    /// Adds the nodes by which [`Saver::save_snapshot`] knows that all variables were read. Reference variables are
    /// read while they are written to the file, so with one of them there is no such moment.
    pub fn prepare_snapshots(&self) {
        self.snapshot.get_or_init(|| snapshot::build(&self.graph, &self.def));
    }

    fn check_names(&self, path: &str, step: Option<i64>, options: &SaveOptions) -> Result<()> {
        if options.latest_filename.contains('/') {
            return Err(invalid!("'latest_filename' must not contain path components"));
        }
        let is_same = io::fs::path::basename(path) == options.latest_filename;
        if is_same && !self.def.sharded && step.is_none() {
            return Err(invalid!(
                "'latest_filename' collides with 'save_path': '{}' and '{path}'",
                options.latest_filename
            ));
        }
        Ok(())
    }

    /// Saves a checkpoint; `run` runs the save step with the given feeds.
    fn save_by(
        &self,
        session: &Session,
        path: &str,
        step: Option<i64>,
        options: &SaveOptions,
        run: impl FnOnce(Feeds) -> Result<String>,
    ) -> Result<String> {
        let prefix = match step {
            Some(step) if self.padded => format!("{path}-{step:08}"),
            Some(step) => format!("{path}-{step}"),
            None => path.to_string(),
        };
        let written = match self.is_empty() {
            true => prefix.clone(),
            false => {
                let feeds = Feeds::new().with_name(&self.def.filename_tensor, prefix.as_str());
                let folder = io::fs::path::dirname(path);
                let written = self.with_progress(session, Operation::Saving, || run(feeds));
                let written = written.map_err(|error| self.explain_save(error, folder, &prefix))?;
                self.record(&written, folder, options)?;
                written
            }
        };
        if options.write_meta_graph {
            self.export_meta_graph(format!("{prefix}.{}", options.meta_graph_suffix))?;
        }
        Ok(written)
    }

    /// Adds a checkpoint to the list and deletes those that are not kept any longer.
    fn record(&self, written: &str, folder: &str, options: &SaveOptions) -> Result<()> {
        if options.write_state {
            let old = self.retention.lock().record(written, now());
            let state = CheckpointState {
                model_checkpoint_path: written.to_string(),
                all_model_checkpoint_paths: self.retention.lock().paths(),
                ..CheckpointState::default()
            };
            state.write(&self.systems, folder, &options.latest_filename, self.relative)?;
            old.iter().for_each(|prefix| self.delete(prefix, &options.meta_graph_suffix));
        }
        Ok(())
    }

    fn explain_save(&self, error: Error, folder: &str, prefix: &str) -> Error {
        let missing = !folder.is_empty() && matches!(self.systems.is_dir(folder), Ok(false));
        match missing && matches!(error.code, Code::FailedPrecondition | Code::NotFound) {
            true => invalid!("Parent directory of {prefix} doesn't exist, can't save. ({})", error.message),
            false => error,
        }
    }

    /// Deletes the files of a checkpoint. A failure is only logged, since training can continue.
    fn delete(&self, prefix: &str, meta_graph_suffix: &str) {
        if let Err(error) = remove_checkpoint(&self.systems, prefix, meta_graph_suffix) {
            tracing::warn!("Ignoring: {error}");
        }
    }

    /// Reads the variables from a checkpoint.
    pub fn restore(&self, session: &Session, path: impl AsRef<Path>) -> Result<()> {
        let path = to_str(path.as_ref())?;
        if self.is_empty() {
            return Ok(());
        }
        if !checkpoint_exists(&self.systems, path)? {
            return Err(invalid!("The passed save_path is not a valid checkpoint: {path}"));
        }
        let feeds = Feeds::new().with_name(&self.def.filename_tensor, path);
        let work = || session.execute_with(self.def.restore_op.as_str(), feeds);
        self.with_progress(session, Operation::Restoring, work).map_err(explain_restore)
    }

    fn with_progress<T>(&self, session: &Session, operation: Operation, work: impl FnOnce() -> Result<T>) -> Result<T> {
        match &self.progress {
            Some(progress) => progress.during(session, operation, work),
            None => work(),
        }
    }

    /// The checkpoints that are kept, the oldest first.
    pub fn last_checkpoints(&self) -> Vec<String> {
        self.retention.lock().paths()
    }

    /// Takes over checkpoints that an earlier program wrote, the oldest first. Those whose files are gone are left out.
    pub fn recover_last_checkpoints(&self, paths: &[String]) -> Result<()> {
        let mut found = Vec::new();
        for path in paths {
            if let Some(time) = checkpoint_time(&self.systems, path)? {
                found.push((path.clone(), time));
            }
        }
        self.retention.lock().recover(found);
        Ok(())
    }

    /// The newest checkpoint of a folder.
    pub fn latest_checkpoint(&self, folder: impl AsRef<Path>) -> Result<Option<String>> {
        latest_checkpoint_on(&self.systems, folder)
    }

    /// The list of checkpoints in a folder.
    pub fn checkpoint_state(&self, folder: impl AsRef<Path>) -> Result<Option<CheckpointState>> {
        CheckpointState::read(&self.systems, to_str(folder.as_ref())?, STATE_FILE)
    }

    /// An integer that a checkpoint holds under this name.
    pub fn read_number(&self, path: impl AsRef<Path>, name: &str) -> Result<i64> {
        step_number(&Bundle::open(&self.systems, to_str(path.as_ref())?)?.read(name)?)
    }

    /// Writes the graph with this saver to a file.
    pub fn export_meta_graph(&self, file: impl AsRef<Path>) -> Result<()> {
        let options = ExportOptions { saver: Some(self.def.clone()), ..ExportOptions::default() };
        meta_graph::export(&self.graph, &options)?.write(&self.systems, to_str(file.as_ref())?)
    }

    /// Where the list of checkpoints is written, and checkpoints are deleted.
    pub fn systems(&self) -> &FileSystems {
        &self.systems
    }

    /// The saver as a value of a collection.
    pub(crate) fn to_record(&self) -> AttrValue {
        let attrs = BTreeMap::from([("serialized".to_string(), AttrValue::String(self.def.to_bytes()))]);
        AttrValue::Func(Arc::new(Function { name: "SaverDef".to_string(), attrs }))
    }
}

/// The newest checkpoint of a folder, if there is one.
pub fn latest_checkpoint(folder: impl AsRef<Path>) -> Result<Option<String>> {
    latest_checkpoint_on(&FileSystems::local(), folder)
}

/// The newest checkpoint of a folder on these file systems, if there is one.
pub fn latest_checkpoint_on(systems: &FileSystems, folder: impl AsRef<Path>) -> Result<Option<String>> {
    io::latest_checkpoint(systems, to_str(folder.as_ref())?, STATE_FILE)
}

/// The savers in a graph's collection.
fn defs(graph: &Graph) -> Vec<SaverDef> {
    let def = |record: &AttrValue| match record {
        AttrValue::Func(record) if record.name == "SaverDef" => match record.attrs.get("serialized") {
            Some(AttrValue::String(bytes)) => SaverDef::read(bytes.clone()).ok(),
            _ => None,
        },
        _ => None,
    };
    graph.collection(SAVERS).iter().filter_map(def).collect()
}

/// Deletes all files of a checkpoint, and the graph beside it.
pub fn remove_checkpoint(systems: &FileSystems, prefix: impl AsRef<Path>, meta_graph_suffix: &str) -> Result<()> {
    let prefix = to_str(prefix.as_ref())?;
    let mut files = systems.glob(&format!("{prefix}.data-?????-of-?????"))?;
    files.extend([format!("{prefix}.index"), format!("{prefix}.{meta_graph_suffix}")]);
    for file in files {
        if systems.exists(&file)? {
            systems.delete(&file)?;
        }
    }
    Ok(())
}

/// When a checkpoint was written, in seconds since 1970; none if it is gone.
fn checkpoint_time(systems: &FileSystems, prefix: &str) -> Result<Option<f64>> {
    for file in [format!("{prefix}.index"), prefix.to_string()] {
        if systems.exists(&file)? {
            return Ok(Some(seconds(systems.stat(&file)?.modified)));
        }
    }
    Ok(None)
}

fn now() -> f64 {
    seconds(SystemTime::now())
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Adds the most likely cause to the error of a checkpoint that cannot be read into this graph.
fn explain_restore(error: Error) -> Error {
    let cause = match error.code {
        Code::NotFound => "a Variable name or other graph key that is missing",
        Code::InvalidArgument => "a mismatch between the current graph and the graph",
        _ => return error,
    };
    let message = format!(
        "Restoring from checkpoint failed. This is most likely due to {cause} from the checkpoint. Please \
         ensure that you have not altered the graph expected based on the checkpoint. Original error:\n\n{}",
        error.message
    );
    Error::new(error.code, message)
}
