//! The services of a chief: summaries, speed and checkpoints, each on a thread of its own.

use super::Supervisor;
use crate::coordination::Looper;
use crate::hooks::step_name;
use checkpoint::saver::SaveOptions;
use checkpoint::step_number;
use checkpoint::write_graph_text;
use graph::Output;
use io::event::{SessionLog, SessionStatus};
use io::fs::path::{join, to_str};
use session::Session;
use status::{Result, failed_precondition};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tensor::Tensor;

/// The current value of the step counter.
pub(super) fn read_step(session: &Session, step: &Output) -> Result<i64> {
    step_number(&session.run::<Tensor>(step)?)
}

/// The summaries and the step counter, read in the same step.
fn read_summary(session: &Session, summary: &Output, step: Option<&Output>) -> Result<(Tensor, i64)> {
    match step {
        Some(step) => {
            let (message, step): (Tensor, Tensor) = session.run((summary, step))?;
            Ok((message, step_number(&step)?))
        }
        None => Ok((session.run(summary)?, 0)),
    }
}

impl Supervisor {
    /// Writes the graph to the folder and to the events.
    pub(super) fn write_graph(&self) -> Result<()> {
        if let Some(folder) = &self.settings.logdir {
            write_graph_text(&self.settings.systems, folder, &self.graph)?;
        }
        self.events.as_ref().map_or(Ok(()), |events| events.add_graph(&self.graph))
    }

    /// Starts the threads of a chief, which save and report until the supervisor stops. Without a `logdir` there are
    /// none.
    pub fn start_standard_services(&self, session: &Arc<Session>) -> Result<()> {
        if !self.settings.is_chief {
            return Err(failed_precondition!(
                "Only chief supervisor can start standard services. Because only chief supervisors can write events."
            ));
        }
        let Some(folder) = self.settings.logdir.clone() else { return Ok(()) };
        if let (Some(events), Some(step)) = (&self.events, &self.settings.step) {
            let log = SessionLog { status: SessionStatus::Start, ..SessionLog::default() };
            events.add_session_log(log, read_step(session, step)?)?;
        }
        self.start_summaries(session)?;
        self.start_step_counter(session)?;
        self.start_checkpoints(session, &folder)
    }

    fn start_summaries(&self, session: &Arc<Session>) -> Result<()> {
        let (Some(events), Some(summary), Some(every)) =
            (self.events.clone(), self.scaffold_nodes.summary_op.clone(), self.settings.save_summaries)
        else {
            return Ok(());
        };
        let (session, step) = (session.clone(), self.settings.step.clone());
        Looper::start(&self.coordinator, "supervisor-summaries", Some(every), move || {
            let (message, step) = read_summary(&session, &summary, step.as_ref())?;
            events.add_summary(message.to_string_scalar()?, step)?;
            events.flush()
        })
    }

    fn start_step_counter(&self, session: &Arc<Session>) -> Result<()> {
        let (Some(events), Some(step), Some(every)) =
            (self.events.clone(), self.settings.step.clone(), self.settings.save_summaries)
        else {
            return Ok(());
        };
        let (session, tag) = (session.clone(), format!("{}/sec", step_name(&step)));
        let mut last = (Instant::now(), read_step(&session, &step)?);
        Looper::start(&self.coordinator, "supervisor-step-counter", Some(every), move || {
            let now = (Instant::now(), read_step(&session, &step)?);
            let seconds = now.0.saturating_duration_since(last.0).as_secs_f64();
            let rate = if seconds > 0.0 { (now.1 - last.1) as f64 / seconds } else { f64::INFINITY };
            last = now;
            events.add_scalar(&tag, rate, now.1)
        })
    }

    fn start_checkpoints(&self, session: &Arc<Session>, folder: &Path) -> Result<()> {
        let Some(every) = self.settings.save_model.filter(|_| !self.scaffold_nodes.saver.is_empty()) else {
            return Ok(());
        };
        let folder = to_str(folder)?;
        let prefix = join(folder, &self.settings.basename);
        self.scaffold_nodes.saver.systems().create_dirs(folder)?;
        let (session, step, saver) = (session.clone(), self.settings.step.clone(), self.scaffold_nodes.saver.clone());
        let events = self.events.clone();
        Looper::start(&self.coordinator, "supervisor-checkpoints", Some(every), move || {
            let Some(step) = &step else { return saver.save(&session, &prefix, None).map(drop) };
            let mut at = 0;
            saver.save_snapshot(&session, &prefix, step, &SaveOptions::default(), |step| at = step)?;
            let (status, checkpoint_path) = (SessionStatus::Checkpoint, prefix.clone());
            let log = SessionLog { status, checkpoint_path, ..SessionLog::default() };
            events.as_ref().map_or(Ok(()), |events| events.add_session_log(log, at))
        })
    }
}
