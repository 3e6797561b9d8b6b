//! Polls a task of a kernel on the threads of its step, so that it holds none of them while it waits.

use crate::Spawn;
use parking_lot::Mutex;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Polls `work` on this thread and, each time it is woken, on a thread that `spawn` provides. When it is ready, drops it
/// and then passes its result to `done`.
///
/// `spawn` must not run what it is given before it returns: `work` may be woken while it is being polled.
pub fn poll_on<T: Send + 'static>(
    spawn: Spawn,
    work: impl FnMut(&mut Context<'_>) -> Poll<T> + Send + 'static,
    done: impl FnOnce(T) + Send + 'static,
) {
    Arc::new(Task { spawn, running: Mutex::new(Some((work, done))) }).poll();
}

struct Task<W, D> {
    spawn: Spawn,
    /// The work and what receives its result; `None` when it is ready.
    running: Mutex<Option<(W, D)>>,
}

impl<T, W, D> Task<W, D>
where
    T: Send + 'static,
    W: FnMut(&mut Context<'_>) -> Poll<T> + Send + 'static,
    D: FnOnce(T) + Send + 'static,
{
    fn poll(self: Arc<Self>) {
        let mut running = self.running.lock();
        let Some((work, _)) = &mut *running else { return };
        let waker = Waker::from(self.clone());
        let Poll::Ready(result) = work(&mut Context::from_waker(&waker)) else { return };
        let Some((work, done)) = running.take() else { return };
        drop((running, work));
        done(result);
    }
}

impl<T, W, D> Wake for Task<W, D>
where
    T: Send + 'static,
    W: FnMut(&mut Context<'_>) -> Poll<T> + Send + 'static,
    D: FnOnce(T) + Send + 'static,
{
    fn wake(self: Arc<Self>) {
        let spawn = self.spawn.clone();
        spawn(Box::new(move || self.poll()));
    }
}
