//! A call that is made once, or withdrawn before.

use parking_lot::Mutex;
use std::sync::Arc;

/// A call that is made once, or withdrawn before. Several may hold it; whoever is first makes it.
#[derive(Clone)]
pub struct OneCall(Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>);

impl OneCall {
    /// A call that is still to be made.
    pub fn new(call: impl FnOnce() + Send + 'static) -> OneCall {
        OneCall(Arc::new(Mutex::new(Some(Box::new(call)))))
    }

    /// Makes the call, unless it was made or withdrawn.
    pub fn make(&self) {
        let call = self.0.lock().take();
        if let Some(call) = call {
            call();
        }
    }

    /// Lets nobody make it any more.
    pub fn withdraw(&self) {
        let call = self.0.lock().take();
        drop(call); // outside the lock: it may hold others
    }

    /// Whether it is still to be made.
    pub fn is_open(&self) -> bool {
        self.0.lock().is_some()
    }
}
