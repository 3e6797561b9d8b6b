//! Writes when every node of a step ran, every so often.

use super::{Every, Timer, read_step, stale_step, step_of};
use crate::monitored::{RunArgs, RunContext, RunValues, SessionRunHook};
use graph::{Graph, Output};
use io::FileSystems;
use io::fs::path;
use session::{RunOptions, chrome_trace};
use status::Result;

/// Writes `timeline-<step>.json` every so often, which Perfetto and Chrome show.
pub struct Profiler {
    systems: FileSystems,
    folder: String,
    timer: Timer,
    counter: Option<Output>,
    next: Option<i64>,
    asked: bool,
}

impl Profiler {
    /// Writes to `folder`.
    pub fn new(folder: &str, every: Every) -> Profiler {
        Profiler {
            systems: FileSystems::local(),
            folder: folder.to_string(),
            timer: Timer::new(every),
            counter: None,
            next: None,
            asked: false,
        }
    }

    /// The same on these file systems.
    pub fn file_systems(mut self, systems: &FileSystems) -> Profiler {
        self.systems = systems.clone();
        self
    }
}

impl SessionRunHook for Profiler {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.counter = Some(step_of(graph, "ProfilerHook")?);
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
            self.systems.create_dirs(&self.folder)?;
            let file = path::join(&self.folder, &format!("timeline-{step}.json"));
            self.systems.write(&file, chrome_trace(values.metadata()).as_bytes())?;
        }
        self.next = Some(step + 1);
        Ok(())
    }
}
