//! The threads on which requests run, and the wait for their answers.

use parking_lot::Mutex;
use status::{Result, internal};
use std::sync::mpsc::{Receiver, sync_channel};
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that wait for the network; they start with the first request and end with this value.
#[derive(Default)]
pub(crate) struct Threads {
    runtime: Mutex<Option<Runtime>>,
}

/// Requests spend their time waiting; two threads also check and decrypt what two processors' worth of ops can read.
const THREADS: usize = 2;

impl Threads {
    /// Does this on one of the threads and waits for it. The caller may itself be a thread of some runtime, so it
    /// waits as any thread does.
    pub fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T> {
        answer(&self.begin(work)?)
    }

    /// Does this on one of the threads; `answer` waits for it.
    pub fn begin<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<Receiver<T>> {
        let (sender, receiver) = sync_channel(1);
        self.handle()?.spawn(async move {
            // Whoever gave up waiting has no use for the answer.
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
        started.ok_or_else(|| internal!("The threads of a store are gone"))
    }
}

/// The answer of work that was begun.
pub(crate) fn answer<T>(receiver: &Receiver<T>) -> Result<T> {
    receiver.recv().map_err(|_| internal!("A request to a store ended without an answer"))
}

impl Drop for Threads {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.get_mut().take() else { return };
        // A runtime must not be dropped on a thread of another; a thread of its own may always wait.
        let _ = std::thread::spawn(move || drop(runtime)).join();
    }
}
