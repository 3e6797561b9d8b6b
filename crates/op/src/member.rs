//! Who takes part in synchronous training: the sessions that bring gradients, and whether they are still there.

use parking_lot::Mutex;
use status::{Error, Result, invalid};
use std::str::FromStr;
use std::sync::Arc;

/// How a task counts the gradients that several sessions bring to its accumulators, and to whom it gives tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// As TensorFlow does: every gradient that is not late counts, whoever brings it, and whoever comes first gets a
    /// token.
    #[default]
    Tf,
    /// One gradient of each session for each step: a second one is dropped, so a step needs as many sessions as it
    /// asks for gradients. A session gets one token for each step.
    Exact,
    /// As `Exact`, but a session that ended, or whose task died, is not waited for, and the token it held is given
    /// to another.
    Shrink,
}

impl FromStr for SyncPolicy {
    type Err = Error;
    fn from_str(text: &str) -> Result<SyncPolicy> {
        match text {
            "tf" => Ok(SyncPolicy::Tf),
            "exact" => Ok(SyncPolicy::Exact),
            "shrink" => Ok(SyncPolicy::Shrink),
            _ => Err(invalid!("'{text}' is no policy of synchronous training; there are exact, shrink and tf")),
        }
    }
}

/// A session that takes part in synchronous training, as the task that holds the accumulators knows it. Two are the
/// same if they are the same object.
pub struct Member {
    policy: SyncPolicy,
    task: String,
    state: Mutex<State>,
}

struct State {
    alive: bool,
    ended: bool,
    /// The step of its last gradient.
    gave: i64,
    /// The step of its last token.
    token: i64,
    told: Vec<Arc<Tell>>,
}

/// Called when a member is lost or comes back, with no lock held.
type Tell = dyn Fn(&Member) + Send + Sync;

impl Member {
    /// A session of the master on this task.
    pub fn new(policy: SyncPolicy, task: &str) -> Member {
        let state = State { alive: true, ended: false, gave: i64::MIN, token: i64::MIN, told: Vec::new() };
        Member { policy, task: task.to_string(), state: Mutex::new(state) }
    }

    /// How gradients are counted.
    pub fn policy(&self) -> SyncPolicy {
        self.policy
    }

    /// The task of its master: a session that comes from the same task takes its place.
    pub fn task(&self) -> &str {
        &self.task
    }

    /// Whether it is still there.
    pub fn is_alive(&self) -> bool {
        self.state.lock().alive
    }

    /// It is lost, or there after all; whoever wants to know is told if that is news.
    pub fn set_alive(&self, alive: bool) {
        self.change(alive, false);
    }

    /// Its session is over: it is lost for good.
    pub fn end(&self) {
        self.change(false, true);
    }

    fn change(&self, alive: bool, ended: bool) {
        let told = {
            let mut state = self.state.lock();
            if state.ended {
                return;
            }
            state.ended = ended;
            if state.alive == alive {
                return;
            }
            state.alive = alive;
            state.told.clone()
        };
        for tell in told {
            tell(self);
        }
    }

    /// Whether its session is over.
    pub fn has_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// Tells `tell` from now on; also at once if the member is lost already.
    pub fn on_change(&self, tell: impl Fn(&Member) + Send + Sync + 'static) {
        let tell: Arc<Tell> = Arc::new(tell);
        let lost = {
            let mut state = self.state.lock();
            state.told.push(tell.clone());
            !state.alive
        };
        if lost {
            tell(self);
        }
    }

    /// It brought a gradient of this step, so it is there.
    pub fn give(&self, step: i64) {
        {
            let mut state = self.state.lock();
            state.gave = state.gave.max(step);
        }
        self.set_alive(true);
    }

    /// Whether a token for this step is of use to it: it has given no gradient of this step yet. At a task to which
    /// it gives none, its last token says how far it is.
    pub fn wants(&self, step: i64) -> bool {
        let state = self.state.lock();
        step > if state.gave > i64::MIN { state.gave } else { state.token }
    }

    /// It gets a token for this step.
    pub fn take_token(&self, step: i64) {
        let mut state = self.state.lock();
        state.token = state.token.max(step);
    }

    /// The token that a lost member has taken and given no gradient for; it can be taken back once.
    pub fn lost_token(&self) -> Option<i64> {
        let mut state = self.state.lock();
        let held = (!state.alive && state.token > state.gave).then_some(state.token);
        if held.is_some() {
            state.token = i64::MIN;
        }
        held
    }
}
