//! Cancellation of steps: notifies ops that wait.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::Error;
use std::sync::atomic::{AtomicBool, Ordering};

/// A callback to run when a step is cancelled.
type Callback = Box<dyn FnOnce(&Error) + Send>;

/// The cancellation state of a step, and the callbacks to notify.
#[derive(Default)]
pub struct Cancel {
    state: Mutex<State>,
    cancelled: AtomicBool,
}

#[derive(Default)]
struct State {
    reason: Option<Error>,
    next: u64,
    callbacks: FxHashMap<u64, Callback>,
}

/// Identifies a registered callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CancelToken(u64);

impl Cancel {
    /// Registers a callback. If the step is cancelled already, returns the reason and registers nothing.
    pub fn register(&self, callback: impl FnOnce(&Error) + Send + 'static) -> Result<CancelToken, Error> {
        let mut state = self.state.lock();
        if let Some(reason) = &state.reason {
            return Err(reason.clone());
        }
        let token = state.next;
        state.next += 1;
        state.callbacks.insert(token, Box::new(callback));
        Ok(CancelToken(token))
    }

    /// Removes a callback; false if it has run or is about to run.
    pub fn deregister(&self, token: CancelToken) -> bool {
        self.state.lock().callbacks.remove(&token.0).is_some()
    }

    /// Cancels the step. The first reason is kept; callbacks run once, on this thread.
    pub fn cancel(&self, reason: Error) {
        let callbacks = {
            let mut state = self.state.lock();
            if state.reason.is_some() {
                return;
            }
            state.reason = Some(reason.clone());
            self.cancelled.store(true, Ordering::Release);
            std::mem::take(&mut state.callbacks)
        };
        for callback in callbacks.into_values() {
            callback(&reason);
        }
    }

    /// True if the step is cancelled; cheap enough to check before every op.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Why the step is cancelled, if it is.
    pub fn reason(&self) -> Option<Error> {
        self.state.lock().reason.clone()
    }
}
