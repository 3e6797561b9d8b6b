//! A chief's duties: summaries, speed and checkpoints, each on a thread of its own.

use super::Supervisor;
use crate::coordination::Looper;
use crate::monitored::step_number;
use crate::saver::SaveOptions;
use graph::Output;
use io::event::{SessionLog, SessionStatus};
use io::fs::path;
use session::{Feeds, Session};
use status::Result;
use std::sync::Arc;
use std::time::Instant;
use tensor::Tensor;

/// Where the step counter is now.
pub(super) fn read_step(session: &Session, step: &Output) -> Result<i64> {
    step_number(&session.run::<Tensor>(step, Feeds::new())?)
}

impl Supervisor {
    /// Starts the threads of a chief. Without a folder there is nothing for them to do.
    pub(super) fn start_standard_services(&self, session: &Arc<Session>) -> Result<()> {
        let Some(folder) = self.logdir.clone() else { return Ok(()) };
        if let Some(events) = &self.events {
            events.add_graph(&self.graph)?;
            if let Some(step) = &self.step {
                let log = SessionLog { status: SessionStatus::Start, ..SessionLog::default() };
                events.add_session_log(log, read_step(session, step)?)?;
            }
        }
        self.start_summaries(session)?;
        self.start_step_counter(session)?;
        self.start_checkpoints(session, &folder)
    }

    fn start_summaries(&self, session: &Arc<Session>) -> Result<()> {
        let (Some(events), Some(summary), Some(every)) =
            (self.events.clone(), self.pieces.summary_op.clone(), self.save_summaries)
        else {
            return Ok(());
        };
        let (session, step) = (session.clone(), self.step.clone());
        Looper::start(&self.coordinator, "supervisor-summaries", Some(every), move || {
            let at = step.as_ref().map_or(Ok(0), |step| read_step(&session, step))?;
            let message: Tensor = session.run(&summary, Feeds::new())?;
            events.add_summary(message.to_string_scalar()?, at)?;
            events.flush()
        })
    }

    fn start_step_counter(&self, session: &Arc<Session>) -> Result<()> {
        let (Some(events), Some(step), Some(every)) = (self.events.clone(), self.step.clone(), self.save_summaries)
        else {
            return Ok(());
        };
        let session = session.clone();
        let mut last = (Instant::now(), read_step(&session, &step)?);
        Looper::start(&self.coordinator, "supervisor-step-counter", Some(every), move || {
            let now = (Instant::now(), read_step(&session, &step)?);
            let seconds = now.0.saturating_duration_since(last.0).as_secs_f64();
            let rate = if seconds > 0.0 { (now.1 - last.1) as f64 / seconds } else { 0.0 };
            last = now;
            events.add_scalar("global_step/sec", rate, now.1)
        })
    }

    fn start_checkpoints(&self, session: &Arc<Session>, folder: &str) -> Result<()> {
        let Some(every) = self.save_model.filter(|_| !self.pieces.saver.is_empty()) else { return Ok(()) };
        let prefix = path::join(folder, &self.basename);
        self.pieces.saver.systems().create_dirs(folder)?;
        let (session, step, saver) = (session.clone(), self.step.clone(), self.pieces.saver.clone());
        let events = self.events.clone();
        Looper::start(&self.coordinator, "supervisor-checkpoints", Some(every), move || {
            let mut at = None;
            match &step {
                Some(step) => {
                    saver.save_snapshot(&session, &prefix, step, &SaveOptions::default(), |step| at = Some(step))?
                }
                None => saver.save(&session, &prefix, None)?,
            };
            let log = SessionLog {
                status: SessionStatus::Checkpoint,
                checkpoint_path: prefix.clone(),
                ..SessionLog::default()
            };
            events.as_ref().map_or(Ok(()), |events| events.add_session_log(log, at.unwrap_or(0)))
        })
    }
}
