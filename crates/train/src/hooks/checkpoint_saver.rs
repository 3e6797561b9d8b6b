//! Writes checkpoints at an interval, while training continues.

use super::{Every, Timer, read_step, stale_step, step_of};
use crate::FileWriter;
use crate::monitored::{RunArgs, RunContext, RunValues, Scaffold, SessionContext, SessionRunHook};
use checkpoint::saver::{SaveOptions, Saver};
use checkpoint::write_graph_text;
use graph::{Graph, Output};
use io::event::{SessionLog, SessionStatus};
use io::fs::path::{join, to_str};
use parking_lot::Mutex;
use session::Session;
use status::{Result, internal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

/// Called before and after checkpoints are written: `before_save` between two steps, before the variables are read;
/// `after_save` on the thread that writes.
pub trait CheckpointSaverListener: Send {
    /// Called before the session is created.
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        let _ = graph;
        Ok(())
    }

    /// Called before a checkpoint is written.
    fn before_save(&mut self, session: &Session, step: i64) -> Result<()> {
        let _ = (session, step);
        Ok(())
    }

    /// Called after a checkpoint was written; gives whether training should stop, which it does at the next step.
    fn after_save(&mut self, session: &Session, step: i64) -> Result<bool> {
        let _ = (session, step);
        Ok(false)
    }

    /// Called after the last checkpoint.
    fn end(&mut self, session: &Session, step: i64) -> Result<()> {
        let _ = (session, step);
        Ok(())
    }
}

/// Writes a checkpoint when the session is created, then at an interval, and after the last step.
///
/// A step waits only until the variables were read. A thread writes them while training continues, one checkpoint at
/// a time; a checkpoint that is due meanwhile is written afterwards. An error of the thread is returned by the next
/// step, or at the end.
pub struct CheckpointSaver {
    writer: Writer,
    timer: Timer,
    background: bool,
    graph: Option<Graph>,
    counter: Option<Output>,
    session: Option<Arc<Session>>,
    saving: Option<JoinHandle<Result<bool>>>,
}

/// Writes checkpoints, on any thread.
#[derive(Clone)]
struct Writer {
    folder: PathBuf,
    basename: String,
    saver: Source,
    listeners: Arc<Mutex<Vec<Box<dyn CheckpointSaverListener>>>>,
    events: Option<Arc<FileWriter>>,
    save_graph: bool,
}

/// The source of the saver.
#[derive(Clone)]
enum Source {
    Given(Arc<Saver>),
    Scaffold(Arc<Scaffold>),
}

impl CheckpointSaver {
    /// Writes to `folder` with this saver.
    pub fn new(folder: impl AsRef<Path>, every: Every, saver: Arc<Saver>) -> CheckpointSaver {
        CheckpointSaver::over(folder.as_ref(), every, Source::Given(saver))
    }

    /// Writes to `folder` with the saver of a scaffold.
    pub fn of_scaffold(folder: impl AsRef<Path>, every: Every, scaffold: Arc<Scaffold>) -> CheckpointSaver {
        CheckpointSaver::over(folder.as_ref(), every, Source::Scaffold(scaffold))
    }

    fn over(folder: &Path, every: Every, saver: Source) -> CheckpointSaver {
        let writer = Writer {
            folder: folder.to_path_buf(),
            basename: "model.ckpt".to_string(),
            saver,
            listeners: Arc::default(),
            events: None,
            save_graph: true,
        };
        let timer = Timer::new(every);
        CheckpointSaver { writer, timer, background: true, graph: None, counter: None, session: None, saving: None }
    }

    /// Sets the name of checkpoints, to which the step is appended; the default is `model.ckpt`.
    pub fn basename(mut self, name: &str) -> CheckpointSaver {
        self.writer.basename = name.to_string();
        self
    }

    /// Adds a listener.
    pub fn listener(self, listener: impl CheckpointSaverListener + 'static) -> CheckpointSaver {
        self.writer.listeners.lock().push(Box::new(listener));
        self
    }

    /// Adds the graph and every checkpoint to these events.
    pub fn events(mut self, events: Arc<FileWriter>) -> CheckpointSaver {
        self.writer.events = Some(events);
        self
    }

    /// Sets whether the graph is written, as `graph.pbtxt` and beside every checkpoint.
    pub fn save_graph(mut self, save: bool) -> CheckpointSaver {
        self.writer.save_graph = save;
        self
    }

    /// Sets whether training continues while a checkpoint is written. If not, no checkpoint is skipped, however often
    /// they are due.
    pub fn in_background(mut self, background: bool) -> CheckpointSaver {
        self.background = background;
        self
    }

    /// Saves, in the background or not; gives whether a listener wants to stop.
    fn save(&mut self, session: &Arc<Session>, counter: &Output, step: i64) -> Result<bool> {
        self.writer.before_save(session, step)?;
        if !self.background {
            self.timer.done(step);
            return self.writer.save(session, counter, |_| ());
        }
        let (tell, told) = channel();
        let (writer, session, counter) = (self.writer.clone(), session.clone(), counter.clone());
        let work = move || {
            writer.save(&session, &counter, |step| {
                let _ = tell.send(step);
            })
        };
        let thread = std::thread::Builder::new().name("checkpoint-saver".to_string()).spawn(work);
        self.saving =
            Some(thread.map_err(|error| internal!("cannot start the thread that writes checkpoints: {error}"))?);
        match told.recv() {
            Ok(step) => {
                self.timer.done(step);
                Ok(false)
            }
            // The save ended before the variables were read.
            Err(_) => self.join(),
        }
    }

    /// Waits for the checkpoint that is being written; gives whether a listener wants to stop.
    fn join(&mut self) -> Result<bool> {
        let Some(saving) = self.saving.take() else { return Ok(false) };
        let saved = saving.join().unwrap_or_else(|_| Err(internal!("the thread that writes checkpoints panicked")));
        if saved.is_err() {
            self.timer.reset(); // no step has its checkpoint, also not the one at which this began
        }
        saved
    }

    /// Collects the result of a checkpoint that was written in the meantime.
    fn settle(&mut self, context: &RunContext<'_>) -> Result<()> {
        if self.saving.as_ref().is_some_and(JoinHandle::is_finished) && self.join()? {
            context.request_stop();
        }
        Ok(())
    }

    /// Writes the last checkpoint, unless this step has one, and ends the listeners.
    fn finish(&mut self, session: &Session, counter: &Output) -> Result<()> {
        let step = read_step(session, counter)?;
        if self.timer.last_step() != Some(step) {
            self.writer.before_save(session, step)?;
            self.writer.save(session, counter, |_| ())?;
        }
        self.session = None;
        self.writer.listeners.lock().iter_mut().try_for_each(|listener| listener.end(session, step))?;
        self.writer.events.as_ref().map_or(Ok(()), |events| events.flush())
    }
}

impl Writer {
    fn saver(&self) -> Result<&Saver> {
        match &self.saver {
            Source::Given(saver) => Ok(saver),
            Source::Scaffold(scaffold) => Ok(&scaffold.nodes()?.saver),
        }
    }

    fn before_save(&self, session: &Session, step: i64) -> Result<()> {
        self.listeners.lock().iter_mut().try_for_each(|listener| listener.before_save(session, step))
    }

    /// Writes a checkpoint and calls `read` when training may continue; gives whether a listener wants to stop.
    fn save(&self, session: &Session, counter: &Output, read: impl FnOnce(i64)) -> Result<bool> {
        let prefix = join(to_str(&self.folder)?, &self.basename);
        let options = SaveOptions { write_meta_graph: self.save_graph, ..SaveOptions::default() };
        let mut at = 0;
        self.saver()?.save_snapshot(session, &prefix, counter, &options, |step| {
            tracing::info!("Saving checkpoints for {step} into {prefix}.");
            at = step;
            read(step);
        })?;
        if let Some(events) = &self.events {
            let status = SessionStatus::Checkpoint;
            events.add_session_log(SessionLog { status, checkpoint_path: prefix, message: String::new() }, at)?;
        }
        let mut stop = false;
        for listener in self.listeners.lock().iter_mut() {
            stop |= listener.after_save(session, at)?;
        }
        Ok(stop)
    }

    /// Writes the graph as text and as an event.
    fn write_graph(&self, graph: &Graph) -> Result<()> {
        let saver = self.saver()?;
        match self.save_graph {
            true => write_graph_text(saver.systems(), &self.folder, graph)?,
            false => saver.systems().create_dirs(to_str(&self.folder)?)?,
        }
        self.events.as_ref().map_or(Ok(()), |events| events.add_graph(graph))
    }
}

impl SessionRunHook for CheckpointSaver {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.counter = Some(step_of(graph, "CheckpointSaverHook")?);
        self.graph = Some(graph.clone());
        if let Source::Given(saver) = &self.writer.saver {
            saver.prepare_snapshots();
        }
        self.writer.listeners.lock().iter_mut().try_for_each(|listener| listener.begin(graph))
    }

    fn after_create_session(&mut self, context: &SessionContext<'_>) -> Result<()> {
        let (Some(counter), Some(graph)) = (self.counter.clone(), self.graph.clone()) else { return Ok(()) };
        if let Err(error) = self.join() {
            tracing::warn!("A checkpoint of the session before was not written: {error}");
        }
        let session = context.session();
        self.session = Some(session.clone());
        let step = read_step(session, &counter)?;
        self.writer.write_graph(&graph)?;
        self.save(session, &counter, step).map(drop)
    }

    fn before_run(&mut self, context: &RunContext<'_>) -> Result<RunArgs> {
        self.settle(context)?;
        Ok(self.counter.as_ref().map_or_else(RunArgs::nothing, RunArgs::fetch))
    }

    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        let (Some(counter), Some(session)) = (self.counter.clone(), self.session.clone()) else { return Ok(()) };
        self.settle(context)?;
        // The step may have incremented the counter after it was read, so read it again when a checkpoint may be due.
        let may_be_due = self.timer.is_due(stale_step(values)?) || self.timer.is_due(stale_step(values)? + 1);
        if self.saving.is_some() || !may_be_due {
            return Ok(());
        }
        let step = read_step(&session, &counter)?;
        if self.timer.is_due(step) && self.save(&session, &counter, step)? {
            context.request_stop();
        }
        Ok(())
    }

    fn end(&mut self, session: &Session) -> Result<()> {
        let Some(counter) = self.counter.clone() else { return Ok(()) };
        let earlier = self.join();
        let finished = self.finish(session, &counter);
        earlier.and(finished)
    }

    fn abandoned(&mut self) {
        if let Err(error) = self.join() {
            tracing::warn!("The last checkpoint was not written: {error}");
        }
    }
}

impl Drop for CheckpointSaver {
    fn drop(&mut self) {
        // The session was not closed because of another error, which the caller has.
        let _ = self.join();
    }
}
