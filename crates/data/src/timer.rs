//! Wakes tasks at given times, on one thread for all pipelines of a device.

use op::Resources;
use parking_lot::{Condvar, Mutex, MutexGuard};
use status::Result;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The container of the timer of a device. Containers of users cannot have this name.
const CONTAINER: &str = "__timer";

/// A timer. Its thread starts with the first alarm; dropping the timer stops the thread and waits for it.
#[derive(Default)]
pub(crate) struct Timer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The wakers by their times.
#[derive(Default)]
struct State {
    wakers: BTreeMap<Key, Waker>,
    next: u64,
    stopped: bool,
}

/// When, and a number that tells alarms of one time apart.
type Key = (Instant, u64);

impl Timer {
    /// The timer of a device.
    pub fn of(resources: &Resources) -> Result<Arc<Timer>> {
        resources.get_or_create(CONTAINER, "data", || Ok(Timer::default()))
    }

    /// An alarm after a duration. A time that cannot be represented never comes.
    pub fn alarm(&self, duration: Duration, waker: &Waker) -> Alarm {
        let shared = self.shared.clone();
        let Some(time) = Instant::now().checked_add(duration) else { return Alarm { shared, key: None } };
        let mut state = self.shared.state.lock();
        let key = (time, state.next);
        state.next += 1;
        state.wakers.insert(key, waker.clone());
        drop(state);
        self.start();
        self.shared.changed.notify_one();
        Alarm { shared, key: Some(key) }
    }

    fn start(&self) {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            *thread = std::thread::Builder::new().name("data-timer".to_string()).spawn(move || shared.run()).ok();
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.shared.state.lock().stopped = true;
        self.shared.changed.notify_one();
        // The last owner may be woken by the thread itself, which then ends by itself.
        let thread = self.thread.lock().take().filter(|thread| thread.thread().id() != std::thread::current().id());
        if let Some(thread) = thread {
            _ = thread.join();
        }
        let left = std::mem::take(&mut self.shared.state.lock().wakers);
        drop(left); // outside the lock: a waker may hold a pipeline with other alarms
    }
}

/// A time at which a task is woken; dropping it withdraws it.
pub(crate) struct Alarm {
    shared: Arc<Shared>,
    key: Option<Key>,
}

impl Alarm {
    /// True if the time has come.
    pub fn has_rung(&self) -> bool {
        self.key.is_some_and(|(time, _)| time <= Instant::now())
    }

    /// Wakes another task in place of the one before.
    pub fn wake(&self, waker: &Waker) {
        let Some(key) = self.key else { return };
        if let Some(old) = self.shared.state.lock().wakers.get_mut(&key) {
            old.clone_from(waker);
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let withdrawn = self.key.and_then(|key| self.shared.state.lock().wakers.remove(&key));
        drop(withdrawn); // outside the lock: it may end a pipeline with other alarms
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state.lock();
        while !state.stopped {
            match state.wakers.first_key_value().map(|(&key, _)| key) {
                None => self.changed.wait(&mut state),
                Some(key) if key.0 > Instant::now() => _ = self.changed.wait_until(&mut state, key.0),
                Some(key) => {
                    let waker = state.wakers.remove(&key);
                    MutexGuard::unlocked(&mut state, || waker.map(Waker::wake));
                }
            }
        }
    }
}
