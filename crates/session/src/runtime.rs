//! The tokio runtime that a session or a server owns.

use crate::block::block_on;
use grpc::polled_in;
use parking_lot::Mutex;
use status::{Result, internal};
use std::sync::Arc;
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that move messages. Dropping it ends what runs there and waits for the threads; that is allowed on every
/// thread, while a runtime of tokio alone panics when it is dropped inside another one.
pub(crate) struct OwnedRuntime {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl OwnedRuntime {
    /// Starts this many threads.
    pub fn start(threads: usize, name: &str) -> Result<OwnedRuntime> {
        let builder = Builder::new_multi_thread().worker_threads(threads).thread_name(name).enable_all().build();
        let runtime = builder.map_err(|error| internal!("Cannot start threads: {error}"))?;
        Ok(OwnedRuntime { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs a future to its end on this thread, with the timers and sockets of this runtime.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        block_on(polled_in(&self.handle, future))
    }
}

impl Drop for OwnedRuntime {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if Handle::try_current().is_err() {
            return drop(runtime);
        }
        let runtime = Arc::new(Mutex::new(Some(runtime)));
        let moved = runtime.clone();
        match std::thread::Builder::new().spawn(move || drop(moved.lock().take())) {
            Ok(thread) => drop(thread.join()),
            Err(_) => {
                if let Some(runtime) = runtime.lock().take() {
                    runtime.shutdown_background();
                }
            }
        }
    }
}
