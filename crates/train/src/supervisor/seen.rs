//! Where the step counter was when a supervisor saw it last.

use crate::coordination::Coordinator;
use checkpoint::step_number;
use graph::Output;
use parking_lot::Mutex;
use session::{Feeds, RunOptions, Session};
use status::Result;
use std::sync::Arc;
use std::time::Duration;
use tensor::Tensor;

/// How often the step counter is looked at, and how long that may take.
const LOOK: Duration = Duration::from_secs(1);
/// How long the last look may take: it is the one that counts.
const LAST: Duration = Duration::from_secs(5);

/// What a supervisor saw of the sessions it made: on which servers, and where the step counter was. A shared handle.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Option<(String, Option<i64>)>>>);

impl Seen {
    /// Whether there was a session on these servers, and where the step counter was, as far as that is known.
    pub fn on(&self, master: &str) -> Option<Option<i64>> {
        let seen = self.0.lock();
        seen.as_ref().filter(|(known, _)| known == master).map(|&(_, step)| step)
    }

    /// There is a session on these servers, whose step counter is here.
    pub fn begin(&self, master: &str, step: Option<i64>) {
        *self.0.lock() = Some((master.to_string(), step));
    }

    fn note(&self, master: &str, step: i64) {
        if let Some((_, seen)) = self.0.lock().as_mut().filter(|(known, _)| known == master) {
            *seen = Some(step);
        }
    }

    /// Looks at the step counter every so often until `coordinator` stops, and once more then; or until nobody has the
    /// session any more. Steps of the user pass by the supervisor; without this it would not know how far a model was
    /// that was lost.
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
                let is_last = coordinator.wait_for_stop(Some(LOOK));
                let Some(session) = session.upgrade() else { return Ok(()) };
                // A task that is gone is the error of whoever runs steps.
                if let Ok(step) = look(&session, &counter, if is_last { LAST } else { LOOK }) {
                    seen.note(&master, step);
                }
                if is_last {
                    return Ok(());
                }
            }
        })
    }
}

fn look(session: &Session, counter: &Output, limit: Duration) -> Result<i64> {
    let options = RunOptions { timeout: Some(limit), ..RunOptions::default() };
    step_number(&session.run_with_options::<Tensor>(counter, Feeds::new(), options)?.0)
}
