//! The threads that run requests, and waiting for their results.

use parking_lot::Mutex;
use status::{Result, internal};
use std::sync::mpsc::{Receiver, sync_channel};
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that wait for the network. They start with the first request and stop when this value is dropped.
#[derive(Default)]
pub(crate) struct Threads {
    runtime: Mutex<Option<Runtime>>,
}

/// Requests mostly wait; two threads also suffice to verify and decrypt what the ops of two processors can read.
const THREADS: usize = 2;

impl Threads {
    /// Runs `work` on one of the threads and blocks until it is done. The caller may itself be a thread of another
    /// runtime, so it waits on a channel.
    pub fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T> {
        answer(&self.begin(work)?)
    }

    /// Runs `work` on one of the threads; `answer` waits for it.
    pub fn begin<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<Receiver<T>> {
        let (sender, receiver) = sync_channel(1);
        self.handle()?.spawn(async move {
            // Fails only if the caller gave up waiting.
            let _ = sender.send(work.await);
        });
        Ok(receiver)
    }

    fn handle(&self) -> Result<Handle> {
        let mut runtime = self.runtime.lock();
        if runtime.is_none() {
            let made = Builder::new_multi_thread()
                .worker_threads(THREADS)
                .thread_name("flowgrid-store")
                .enable_all()
                .build()
                .map_err(|error| internal!("Cannot start threads: {error}"))?;
            *runtime = Some(made);
        }
        let started = runtime.as_ref().map(|runtime| runtime.handle().clone());
        started.ok_or_else(|| internal!("The threads of this store have stopped"))
    }
}

/// Waits for the result of work that was begun.
pub(crate) fn answer<T>(receiver: &Receiver<T>) -> Result<T> {
    receiver.recv().map_err(|_| internal!("A request to a store ended without an answer"))
}

impl Drop for Threads {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.get_mut().take() else { return };
        // A runtime must not be dropped on a thread of another runtime; a new thread may always block.
        let _ = std::thread::spawn(move || drop(runtime)).join();
    }
}
