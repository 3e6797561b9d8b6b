//! A session that takes part in synchronous training.

use crate::SyncPolicy;
use parking_lot::Mutex;
use std::sync::Arc;

/// A session that takes part in synchronous training, as the task that holds the accumulators knows it. Two members are
/// the same if they are the same object.
pub struct Member {
    policy: SyncPolicy,
    task: String,
    state: Mutex<State>,
}

struct State {
    alive: bool,
    ended: bool,
    /// The step of its last gradient; `i64::MIN` before the first one.
    gradient_step: i64,
    /// The step of the last token it got; `i64::MIN` before the first one.
    token_step: i64,
    listeners: Vec<Arc<Listener>>,
}

/// Called without a lock when a member is marked dead, and when it is marked alive again.
type Listener = dyn Fn(&Member) + Send + Sync;

impl Member {
    /// A session of the master on this task. It is alive.
    pub fn new(policy: SyncPolicy, task: &str) -> Member {
        let state =
            State { alive: true, ended: false, gradient_step: i64::MIN, token_step: i64::MIN, listeners: Vec::new() };
        Member { policy, task: task.to_string(), state: Mutex::new(state) }
    }

    /// How gradients are counted.
    pub fn policy(&self) -> SyncPolicy {
        self.policy
    }

    /// The task of its master: a later session of the same task replaces a dead one.
    pub fn task(&self) -> &str {
        &self.task
    }

    /// True if its session is open and its master answers.
    pub fn is_alive(&self) -> bool {
        self.state.lock().alive
    }

    /// Reports whether its master answers. Listeners are called if that changed. Has no effect after the end.
    pub fn set_alive(&self, alive: bool) {
        self.change(alive, false);
    }

    /// Its session is closed: the member is dead for good.
    pub fn end(&self) {
        self.change(false, true);
    }

    fn change(&self, alive: bool, ended: bool) {
        let listeners = {
            let mut state = self.state.lock();
            if state.ended {
                return;
            }
            state.ended = ended;
            if state.alive == alive {
                return;
            }
            state.alive = alive;
            state.listeners.clone()
        };
        for listener in listeners {
            listener(self);
        }
    }

    /// True if its session is closed.
    pub fn has_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// Calls `listener` whenever the member dies or comes back; also at once if it is dead already.
    pub fn on_change(&self, listener: impl Fn(&Member) + Send + Sync + 'static) {
        let listener: Arc<Listener> = Arc::new(listener);
        let dead = {
            let mut state = self.state.lock();
            state.listeners.push(listener.clone());
            !state.alive
        };
        if dead {
            listener(self);
        }
    }

    /// Notes that it sent a gradient of this step, which also shows that it is alive.
    pub fn sent_gradient(&self, step: i64) {
        {
            let mut state = self.state.lock();
            state.gradient_step = state.gradient_step.max(step);
        }
        self.set_alive(true);
    }

    /// True if it can use a token for this step, because it has sent no gradient of the step yet. A task that holds
    /// only the queue gets no gradients; there the last token says which step the member has reached.
    pub fn needs_token(&self, step: i64) -> bool {
        let state = self.state.lock();
        step > if state.gradient_step > i64::MIN { state.gradient_step } else { state.token_step }
    }

    /// Notes that it got a token for this step.
    pub fn got_token(&self, step: i64) {
        let mut state = self.state.lock();
        state.token_step = state.token_step.max(step);
    }

    /// Takes back the token that a dead member holds and sent no gradient for. The second call returns none.
    pub fn reclaim_token(&self) -> Option<i64> {
        let mut state = self.state.lock();
        let held = (!state.alive && state.token_step > state.gradient_step).then_some(state.token_step);
        if held.is_some() {
            state.token_step = i64::MIN;
        }
        held
    }
}
