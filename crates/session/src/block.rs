//! Waiting for a future on the calling thread, no longer than a step may take.

use status::{Code, Error, Result};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Runs a future to its end on this thread. When `limit` is over the future is dropped, which cancels what
/// it waits for.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T>>, limit: Option<Duration>) -> Result<T> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    // A limit beyond what the clock can express is none.
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
        match end.map(|end| end.saturating_duration_since(Instant::now())) {
            None => std::thread::park(),
            Some(Duration::ZERO) => return Err(timed_out()),
            Some(left) => std::thread::park_timeout(left),
        }
    }
}

/// The error of a step whose time is over.
pub(crate) fn timed_out() -> Error {
    Error::new(Code::DeadlineExceeded, "Timed out waiting for notification")
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
