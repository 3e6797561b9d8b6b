//! Waiting for a future on the calling thread.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Runs a future to its end on this thread. Unlike `block_on` of tokio it may be called on a thread of a tokio runtime:
/// what the future waits for runs on other threads.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    // Futures of tokio count their polls and ask to be polled later when a task has used up its share. This thread would poll
    // again immediately, and never let another task run.
    let mut future = pin!(tokio::task::unconstrained(future));
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
