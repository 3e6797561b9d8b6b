//! Writes summaries at an interval.

use super::{Every, Timer, read_step, stale_step, step_of};
use crate::FileWriter;
use crate::monitored::{RunArgs, RunContext, RunValues, Scaffold, SessionRunHook};
use graph::{Graph, Output};
use io::event::{SessionLog, SessionStatus};
use session::Session;
use status::Result;
use std::sync::Arc;
use tensor::Tensor;

/// Writes summaries at an interval.
pub struct SummarySaver {
    timer: Timer,
    events: Arc<FileWriter>,
    source: Source,
    counter: Option<Output>,
    next: Option<i64>,
    asked: bool,
}

/// The source of the summaries.
enum Source {
    Ops(Vec<Output>),
    Scaffold(Arc<Scaffold>),
}

impl SummarySaver {
    /// Writes these summaries.
    pub fn new<'a>(
        summaries: impl IntoIterator<Item = &'a Output>,
        every: Every,
        events: Arc<FileWriter>,
    ) -> SummarySaver {
        SummarySaver::over(Source::Ops(summaries.into_iter().cloned().collect()), every, events)
    }

    /// Writes the summaries of a scaffold.
    pub fn of_scaffold(scaffold: Arc<Scaffold>, every: Every, events: Arc<FileWriter>) -> SummarySaver {
        SummarySaver::over(Source::Scaffold(scaffold), every, events)
    }

    fn over(source: Source, every: Every, events: Arc<FileWriter>) -> SummarySaver {
        SummarySaver { timer: Timer::new(every), events, source, counter: None, next: None, asked: false }
    }

    fn summaries(&self) -> Result<Vec<Output>> {
        match &self.source {
            Source::Ops(ops) => Ok(ops.clone()),
            Source::Scaffold(scaffold) => Ok(scaffold.nodes()?.summary_op.iter().cloned().collect()),
        }
    }
}

impl SessionRunHook for SummarySaver {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        self.counter = Some(step_of(graph, "SummarySaverHook")?);
        Ok(())
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        self.asked = self.next.is_none_or(|next| self.timer.is_due(next));
        let mut fetches: Vec<Output> = self.counter.iter().cloned().collect();
        if self.asked {
            fetches.extend(self.summaries()?);
        }
        Ok(RunArgs::fetch(&fetches[..]))
    }

    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        let Some(counter) = &self.counter else { return Ok(()) };
        let mut step = stale_step(values)? + 1;
        if self.asked {
            step = read_step(context.session(), counter)?;
        }
        if self.next.is_none() {
            let log = SessionLog { status: SessionStatus::Start, ..SessionLog::default() };
            self.events.add_session_log(log, step)?;
        }
        if self.asked {
            self.timer.done(step);
            for place in 1..values.len() {
                let summary: Tensor = values.get(place)?;
                self.events.add_summary(summary.to_string_scalar()?, step)?;
            }
        }
        self.next = Some(step + 1);
        Ok(())
    }

    fn end(&mut self, _: &Session) -> Result<()> {
        self.events.flush()
    }
}
