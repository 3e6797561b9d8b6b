//! Writes checkpoints every so often.

use super::{Every, Timer, read_step, stale_step, step_of};
use crate::FileWriter;
use crate::monitored::{RunArgs, RunContext, RunValues, Scaffold, SessionContext, SessionRunHook};
use crate::saver::{SaveOptions, Saver};
use graph::{Graph, Output};
use io::event::{SessionLog, SessionStatus};
use io::fs::path;
use session::Session;
use status::Result;
use std::sync::Arc;

/// Something to be done before and after checkpoints are written.
pub trait CheckpointSaverListener: Send {
    /// Before the session is made.
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        let _ = graph;
        Ok(())
    }

    /// Before a checkpoint is written.
    fn before_save(&mut self, session: &Session, step: i64) -> Result<()> {
        let _ = (session, step);
        Ok(())
    }

    /// After a checkpoint was written; says whether training should stop.
    fn after_save(&mut self, session: &Session, step: i64) -> Result<bool> {
        let _ = (session, step);
        Ok(false)
    }

    /// After the last checkpoint.
    fn end(&mut self, session: &Session, step: i64) -> Result<()> {
        let _ = (session, step);
        Ok(())
    }
}

/// Writes a checkpoint when the session is made, then every so often, and after the last step.
pub struct CheckpointSaver {
    folder: String,
    basename: String,
    timer: Timer,
    saver: Source,
    listeners: Vec<Box<dyn CheckpointSaverListener>>,
    events: Option<Arc<FileWriter>>,
    save_graph: bool,
    graph: Option<Graph>,
    counter: Option<Output>,
}

/// Where the saver comes from.
enum Source {
    Given(Arc<Saver>),
    Scaffold(Arc<Scaffold>),
}

impl CheckpointSaver {
    /// Writes to `folder` with this saver.
    pub fn new(folder: &str, every: Every, saver: Arc<Saver>) -> CheckpointSaver {
        CheckpointSaver::over(folder, every, Source::Given(saver))
    }

    /// Writes to `folder` with the saver of a scaffold.
    pub fn of_scaffold(folder: &str, every: Every, scaffold: Arc<Scaffold>) -> CheckpointSaver {
        CheckpointSaver::over(folder, every, Source::Scaffold(scaffold))
    }

    fn over(folder: &str, every: Every, saver: Source) -> CheckpointSaver {
        CheckpointSaver {
            folder: folder.to_string(),
            basename: "model.ckpt".to_string(),
            timer: Timer::new(every),
            saver,
            listeners: Vec::new(),
            events: None,
            save_graph: true,
            graph: None,
            counter: None,
        }
    }

    /// What checkpoints are called before their step; `model.ckpt` unless said otherwise.
    pub fn basename(mut self, name: &str) -> CheckpointSaver {
        self.basename = name.to_string();
        self
    }

    /// One more thing to be done before and after checkpoints are written.
    pub fn listener(mut self, listener: impl CheckpointSaverListener + 'static) -> CheckpointSaver {
        self.listeners.push(Box::new(listener));
        self
    }

    /// Reports the graph and every checkpoint there.
    pub fn events(mut self, events: Arc<FileWriter>) -> CheckpointSaver {
        self.events = Some(events);
        self
    }

    /// Whether the graph is written, as `graph.pbtxt` and beside every checkpoint.
    pub fn save_graph(mut self, save: bool) -> CheckpointSaver {
        self.save_graph = save;
        self
    }

    fn saver(&self) -> Result<&Saver> {
        match &self.saver {
            Source::Given(saver) => Ok(saver),
            Source::Scaffold(scaffold) => Ok(&scaffold.pieces()?.saver),
        }
    }

    /// Writes a checkpoint; says whether a listener wants to stop.
    fn save(&mut self, session: &Session, step: i64) -> Result<bool> {
        self.listeners.iter_mut().try_for_each(|listener| listener.before_save(session, step))?;
        let prefix = path::join(&self.folder, &self.basename);
        tracing::info!("Saving checkpoints for {step} into {prefix}.");
        let options = SaveOptions { write_meta_graph: self.save_graph, ..SaveOptions::default() };
        self.saver()?.save_with(session, &prefix, step, &options)?;
        if let Some(events) = &self.events {
            let status = SessionStatus::Checkpoint;
            events.add_session_log(SessionLog { status, checkpoint_path: prefix, message: String::new() }, step)?;
        }
        let mut stop = false;
        for listener in &mut self.listeners {
            stop |= listener.after_save(session, step)?;
        }
        Ok(stop)
    }

    /// Writes the graph for people, and for programs that show it.
    fn write_graph(&self) -> Result<()> {
        let Some(graph) = &self.graph else { return Ok(()) };
        let saver = self.saver()?;
        saver.systems().create_dirs(&self.folder)?;
        if self.save_graph {
            let bytes = graph::wire::write_graph(&graph.to_def()?);
            let text = io::text::binary_to_text("tensorflow.GraphDef", &bytes)?;
            saver.systems().write(&path::join(&self.folder, "graph.pbtxt"), text.as_bytes())?;
        }
        match &self.events {
            Some(events) => events.add_graph(graph),
            None => Ok(()),
        }
    }
}

impl SessionRunHook for CheckpointSaver {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.counter = Some(step_of(graph, "CheckpointSaverHook")?);
        self.graph = Some(graph.clone());
        self.listeners.iter_mut().try_for_each(|listener| listener.begin(graph))
    }

    fn after_create_session(&mut self, context: &SessionContext<'_>) -> Result<()> {
        let Some(counter) = self.counter.clone() else { return Ok(()) };
        let step = read_step(context.session(), &counter)?;
        self.write_graph()?;
        self.save(context.session(), step)?;
        self.timer.done(step);
        Ok(())
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        Ok(self.counter.as_ref().map_or_else(RunArgs::nothing, RunArgs::fetch))
    }

    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        let Some(counter) = self.counter.clone() else { return Ok(()) };
        // The step may have moved the counter on after it was read: ask again when it may be time.
        if !self.timer.is_due(stale_step(values)?) && !self.timer.is_due(stale_step(values)? + 1) {
            return Ok(());
        }
        let step = read_step(context.session(), &counter)?;
        if self.timer.is_due(step) {
            self.timer.done(step);
            if self.save(context.session(), step)? {
                context.request_stop();
            }
        }
        Ok(())
    }

    fn end(&mut self, session: &Session) -> Result<()> {
        let Some(counter) = self.counter.clone() else { return Ok(()) };
        let step = read_step(session, &counter)?;
        if self.timer.last_step() != Some(step) {
            self.save(session, step)?;
        }
        self.listeners.iter_mut().try_for_each(|listener| listener.end(session, step))?;
        self.events.as_ref().map_or(Ok(()), |events| events.flush())
    }
}
