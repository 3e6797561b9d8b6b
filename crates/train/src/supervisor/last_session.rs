//! The last session of a supervisor, and how far it got.

use crate::coordination::Coordinator;
use checkpoint::step_number;
use graph::Output;
use parking_lot::Mutex;
use session::{Feeds, RunOptions, Session};
use status::Result;
use std::sync::Arc;
use std::time::Duration;
use tensor::Tensor;

/// The time between two reads of the step counter, and the time limit of a read.
const PERIOD: Duration = Duration::from_secs(1);
/// The time limit of the last read: later sessions are compared with it.
const LAST_LIMIT: Duration = Duration::from_secs(5);

/// The servers of the last session of a supervisor, and the last known value of its step counter. A shared handle.
#[derive(Clone, Default)]
pub(super) struct LastSession(Arc<Mutex<Option<(String, Option<i64>)>>>);

impl LastSession {
    /// The last known step if the last session was on these servers; the inner option is none if the step is unknown.
    pub fn on(&self, master: &str) -> Option<Option<i64>> {
        let seen = self.0.lock();
        seen.as_ref().filter(|(known, _)| known == master).map(|&(_, step)| step)
    }

    /// Starts a new session on these servers, whose step counter has this value.
    pub fn begin(&self, master: &str, step: Option<i64>) {
        *self.0.lock() = Some((master.to_string(), step));
    }

    fn note(&self, master: &str, step: i64) {
        if let Some((_, seen)) = self.0.lock().as_mut().filter(|(known, _)| known == master) {
            *seen = Some(step);
        }
    }

    /// Reads the step counter every [`PERIOD`] until `coordinator` stops, and once more then; or until the session is
    /// dropped. The supervisor does not see the steps of the user, so without these reads it would not know how far a
    /// lost model was.
    pub fn watch(
        &self,
        master: &str,
        session: &Arc<Session>,
        counter: &Output,
        coordinator: &Coordinator,
    ) -> Result<()> {
        let (seen, master) = (self.clone(), master.to_string());
        let (session, counter) = (Arc::downgrade(session), counter.clone());
        coordinator.spawn("supervisor-step", move |coordinator| {
            loop {
                let is_last = coordinator.wait_for_stop(Some(PERIOD));
                let Some(session) = session.upgrade() else { return Ok(()) };
                // A lost task is an error of the user's own steps, so it is ignored here.
                if let Ok(step) = read_step(&session, &counter, if is_last { LAST_LIMIT } else { PERIOD }) {
                    seen.note(&master, step);
                }
                if is_last {
                    return Ok(());
                }
            }
        })
    }
}

fn read_step(session: &Session, counter: &Output, limit: Duration) -> Result<i64> {
    let options = RunOptions { timeout: Some(limit), ..RunOptions::default() };
    step_number(&session.run_with_options::<Tensor>(counter, Feeds::new(), options)?.0)
}
