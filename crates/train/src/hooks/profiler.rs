//! Writes traces of steps at an interval.

use super::{Every, Timer, event_file, read_step, stale_step, step_of};
use crate::FileWriter;
use crate::monitored::{RunArgs, RunContext, RunValues, SessionRunHook};
use graph::{Graph, Output};
use io::FileSystems;
use io::fs::path::{join, to_str};
use session::{RunMetadata, RunOptions, Session, chrome_trace};
use status::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes `timeline-<step>.json` at an interval, which Perfetto and Chrome show, and the metadata of the step as an
/// event with the tag `step_<step>`, which TensorBoard shows with the graph.
pub struct Profiler {
    systems: FileSystems,
    folder: PathBuf,
    events: Option<Arc<FileWriter>>,
    timer: Timer,
    counter: Option<Output>,
    next: Option<i64>,
    asked: bool,
    newest: Option<i64>,
}

impl Profiler {
    /// Writes to `folder`, with an event file of its own.
    pub fn new(folder: impl AsRef<Path>, every: Every) -> Profiler {
        Profiler {
            systems: FileSystems::local(),
            folder: folder.as_ref().to_path_buf(),
            events: None,
            timer: Timer::new(every),
            counter: None,
            next: None,
            asked: false,
            newest: None,
        }
    }

    /// Sets the event file.
    pub fn events(mut self, events: Arc<FileWriter>) -> Profiler {
        self.events = Some(events);
        self
    }

    /// Sets the file systems.
    pub fn file_systems(mut self, systems: &FileSystems) -> Profiler {
        self.systems = systems.clone();
        self
    }

    fn write(&mut self, metadata: &RunMetadata, step: i64) -> Result<()> {
        let folder = to_str(&self.folder)?;
        self.systems.create_dirs(folder)?;
        let file = join(folder, &format!("timeline-{step}.json"));
        self.systems.write(&file, chrome_trace(metadata).as_bytes())?;
        // A tag can be used once: a step that is repeated after a ps was lost only gets a new timeline.
        if let (Some(events), true) = (&self.events, self.newest < Some(step)) {
            self.newest = Some(step);
            // TensorFlow's hook has the step only in the tag.
            events.add_run_metadata(metadata, &format!("step_{step}"), 0)?;
        }
        Ok(())
    }
}

impl SessionRunHook for Profiler {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.counter = Some(step_of(graph, "ProfilerHook")?);
        if self.events.is_none() {
            self.events = Some(event_file(&self.systems, &self.folder)?);
        }
        Ok(())
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        self.asked = self.next.is_some_and(|next| self.timer.is_due(next));
        let args = self.counter.as_ref().map_or_else(RunArgs::nothing, RunArgs::fetch);
        Ok(args.options(RunOptions { trace: self.asked, ..RunOptions::default() }))
    }

    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        let Some(counter) = &self.counter else { return Ok(()) };
        let stale = stale_step(values)?;
        if self.next.is_none() {
            self.timer.done(stale);
        }
        let mut step = stale + 1;
        if self.asked {
            step = read_step(context.session(), counter)?;
            self.timer.done(step);
            self.write(values.metadata(), step)?;
        }
        self.next = Some(step + 1);
        Ok(())
    }

    fn end(&mut self, _: &Session) -> Result<()> {
        self.events.as_ref().map_or(Ok(()), |events| events.flush())
    }
}
