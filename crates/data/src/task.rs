//! Work in the background of a pipeline, which holds no thread while it waits.

use op::Spawn;
use parking_lot::Mutex;
use status::{Error, internal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Wake, Waker};

/// Work that is done in turns.
pub trait Work: Send + 'static {
    /// Does what can be done now. The waker starts the next turn.
    fn turn(&mut self, waker: &Waker);

    /// Called when a turn panicked: answers what waits for the work with an error. There may be more turns.
    fn fail(&mut self, error: Error);
}

/// Runs `Work` on the threads of a step each time it is woken. Turns never overlap, and no thread waits for a turn.
pub struct Task<W> {
    state: AtomicU8,
    work: Mutex<W>,
    spawn: Spawn,
}

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const WOKEN_WHILE_RUNNING: u8 = 2;

impl<W: Work> Task<W> {
    /// Work that has not begun.
    pub fn new(spawn: Spawn, work: W) -> Arc<Task<W>> {
        Arc::new(Task { state: AtomicU8::new(IDLE), work: Mutex::new(work), spawn })
    }

    /// Starts a turn on another thread, or another turn after the current one.
    pub fn start(self: &Arc<Self>) {
        if self.claim() {
            let task = self.clone();
            (self.spawn)(Box::new(move || task.run()));
        }
    }

    /// Runs a turn on this thread, unless one is running: then another one follows it.
    pub fn run_here(self: &Arc<Self>) {
        if self.claim() {
            self.clone().run();
        }
    }

    /// Calls a function with the work, between two turns.
    pub fn with<T>(&self, f: impl FnOnce(&mut W) -> T) -> T {
        f(&mut self.work.lock())
    }

    /// True if this thread has to run the turn.
    fn claim(&self) -> bool {
        let next = |state| Some(if state == IDLE { RUNNING } else { WOKEN_WHILE_RUNNING });
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) == Ok(IDLE)
    }

    fn run(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        loop {
            self.turn(&waker);
            if self.state.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return;
            }
            self.state.store(RUNNING, Ordering::Release);
        }
    }
}

impl<W: Work> Task<W> {
    /// A turn that panics must end too: otherwise the task would count as running, and nothing would ever start it again.
    fn turn(&self, waker: &Waker) {
        let mut work = self.work.lock();
        if catch_unwind(AssertUnwindSafe(|| work.turn(waker))).is_err() {
            let error = internal!("The input pipeline failed unexpectedly; initialize the iterator again");
            let _ = catch_unwind(AssertUnwindSafe(|| work.fail(error)));
        }
    }
}

impl<W: Work> Wake for Task<W> {
    fn wake(self: Arc<Self>) {
        self.start();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.start();
    }
}
