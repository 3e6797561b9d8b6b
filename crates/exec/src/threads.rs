//! Threads that run heavy ops.

use crossbeam_channel::{Sender, unbounded};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

/// Work handed to another thread.
type Work = Box<dyn FnOnce() + Send>;

/// A fixed number of threads with one queue. Dropping it lets the queue run dry and waits for the threads.
pub struct Threads {
    queue: Mutex<Option<Sender<Work>>>,
    handles: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    /// Starts `count` threads, at least one.
    pub fn new(count: usize) -> Threads {
        let (queue, work) = unbounded::<Work>();
        let handles = (0..count.max(1))
            .filter_map(|i| {
                let work = work.clone();
                let builder = std::thread::Builder::new().name(format!("flowgrid-exec-{i}")).stack_size(8 << 20);
                builder.spawn(move || work.into_iter().for_each(run)).ok()
            })
            .collect();
        Threads { queue: Mutex::new(Some(queue)), handles: Mutex::new(handles) }
    }

    /// Runs `work` on one of the threads; on this one if they are gone.
    pub fn spawn(&self, work: Work) {
        let refused = match &*self.queue.lock() {
            Some(queue) => queue.send(work).err().map(|error| error.0),
            None => Some(work),
        };
        if let Some(work) = refused {
            work();
        }
    }
}

/// Runs work; a panic in it must not end the thread, which others need. The hook for panics has reported it.
fn run(work: Work) {
    let _ = catch_unwind(AssertUnwindSafe(work));
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.queue.lock().take();
        let own = std::thread::current().id();
        for handle in self.handles.lock().drain(..) {
            // The last owner may be a piece of work on one of the threads: it cannot wait for itself.
            if handle.thread().id() != own {
                let _ = handle.join();
            }
        }
    }
}
