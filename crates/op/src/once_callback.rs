//! A callback that runs at most once.

use parking_lot::Mutex;
use std::sync::Arc;

/// A callback that runs at most once. Clones share it; the first one to run it wins.
#[derive(Clone)]
pub struct OnceCallback(Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>);

impl OnceCallback {
    /// A callback that has not run.
    pub fn new(call: impl FnOnce() + Send + 'static) -> OnceCallback {
        OnceCallback(Arc::new(Mutex::new(Some(Box::new(call)))))
    }

    /// Runs the callback, unless it ran or was withdrawn.
    pub fn run(&self) {
        let call = self.0.lock().take();
        if let Some(call) = call {
            call();
        }
    }

    /// Drops the callback without running it.
    pub fn withdraw(&self) {
        let call = self.0.lock().take();
        drop(call); // outside the lock: it may hold others
    }

    /// True if the callback neither ran nor was withdrawn.
    pub fn is_open(&self) -> bool {
        self.0.lock().is_some()
    }
}
