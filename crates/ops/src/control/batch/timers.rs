//! Calls back at given times, on one thread that runs while there is something to wait for.

use parking_lot::{Condvar, Mutex};
use status::{Result, unavailable};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

type Call = Box<dyn FnOnce() + Send>;

/// A thread with calls to make. It starts with the first call; dropping the timers stops it, waits for it and drops the
/// calls that are left.
#[derive(Default)]
pub(super) struct Timers {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    calls: BTreeMap<(Instant, u64), Call>,
    next: u64,
    stopped: bool,
}

impl Timers {
    /// Makes a call at this time. The call should take no time itself.
    pub fn at(&self, time: Instant, call: impl FnOnce() + Send + 'static) -> Result<()> {
        self.start()?;
        let mut state = self.shared.state.lock();
        state.next += 1;
        let number = state.next;
        state.calls.insert((time, number), Box::new(call));
        self.shared.changed.notify_one();
        Ok(())
    }

    fn start(&self) -> Result<()> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            let started = std::thread::Builder::new().name("flowgrid-batching".to_string()).spawn(move || shared.run());
            *thread = Some(started.map_err(|error| unavailable!("cannot start a thread for batching: {error}"))?);
        }
        Ok(())
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.shared.state.lock().stopped = true;
        self.shared.changed.notify_one();
        // The last owner may be a call on the thread itself, which then ends by itself.
        let thread = self.thread.lock().take().filter(|thread| thread.thread().id() != std::thread::current().id());
        if let Some(thread) = thread {
            _ = thread.join();
        }
        let left = std::mem::take(&mut self.shared.state.lock().calls);
        drop(left); // outside the lock: a call may hold others
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state.lock();
        while !state.stopped {
            let now = Instant::now();
            match state.calls.first_entry() {
                None => self.changed.wait(&mut state),
                Some(entry) if entry.key().0 > now => {
                    let time = entry.key().0;
                    _ = self.changed.wait_until(&mut state, time);
                }
                Some(entry) => {
                    let call = entry.remove();
                    drop(state);
                    call();
                    state = self.state.lock();
                }
            }
        }
    }
}
