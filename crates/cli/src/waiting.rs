//! A message about something that takes unexpectedly long.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Shows a message after a delay, unless it is dropped before.
pub struct Notice {
    finished: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Notice {
    /// Starts the delay. `show` runs on a thread of the notice.
    pub fn after(delay: Duration, show: impl FnOnce() + Send + 'static) -> std::io::Result<Notice> {
        let (finished, wait) = channel::<()>();
        let thread = std::thread::Builder::new().name("flowgrid-notice".into()).spawn(move || {
            if wait.recv_timeout(delay) == Err(RecvTimeoutError::Timeout) {
                show();
            }
        })?;
        Ok(Notice { finished: Some(finished), thread: Some(thread) })
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        // This ends the delay early.
        drop(self.finished.take());
        if let Some(thread) = self.thread.take() {
            // A panic of `show` was already reported by its thread.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
