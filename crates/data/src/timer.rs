//! Wakes tasks at given times, on one thread for all pipelines of the process.

use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::task::Waker;
use std::time::{Duration, Instant};

static TIMER: Timer = Timer { state: Mutex::new(State::new()), changed: Condvar::new() };

struct Timer {
    state: Mutex<State>,
    changed: Condvar,
}

/// The wakers by their times. The thread runs while there are any.
struct State {
    wakers: BTreeMap<Key, Waker>,
    next: u64,
    is_running: bool,
}

/// When, and a number that tells alarms of one time apart.
type Key = (Instant, u64);

impl State {
    const fn new() -> State {
        State { wakers: BTreeMap::new(), next: 0, is_running: false }
    }
}

/// A time at which a task is woken; dropping it withdraws it.
pub(crate) struct Alarm(Option<Key>);

impl Alarm {
    /// An alarm after a duration. A time that cannot be represented never comes.
    pub(crate) fn after(duration: Duration, waker: &Waker) -> Alarm {
        let Some(time) = Instant::now().checked_add(duration) else { return Alarm(None) };
        let mut state = TIMER.state.lock();
        let key = (time, state.next);
        state.next += 1;
        state.wakers.insert(key, waker.clone());
        if !state.is_running {
            state.is_running = std::thread::Builder::new().name("data-timer".to_string()).spawn(run).is_ok();
        }
        TIMER.changed.notify_one();
        Alarm(Some(key))
    }

    /// True if the time has come.
    pub(crate) fn has_rung(&self) -> bool {
        self.0.is_some_and(|(time, _)| time <= Instant::now())
    }

    /// Wakes another task in place of the one before.
    pub(crate) fn wake(&self, waker: &Waker) {
        let Some(key) = self.0 else { return };
        if let Some(old) = TIMER.state.lock().wakers.get_mut(&key) {
            old.clone_from(waker);
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let withdrawn = self.0.and_then(|key| TIMER.state.lock().wakers.remove(&key));
        TIMER.changed.notify_one();
        drop(withdrawn); // outside the lock: it may end a pipeline with other alarms
    }
}

fn run() {
    let mut state = TIMER.state.lock();
    while let Some((&key, _)) = state.wakers.first_key_value() {
        if key.0 > Instant::now() {
            TIMER.changed.wait_until(&mut state, key.0);
            continue;
        }
        let waker = state.wakers.remove(&key);
        parking_lot::MutexGuard::unlocked(&mut state, || waker.map(Waker::wake));
    }
    state.is_running = false;
}
