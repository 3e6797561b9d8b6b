//! A runtime of one thread, for a task that talks to no other.

use crate::runtime::{Runtime, Work};
use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One thread that runs background work and timers. It starts when it is first needed: most sessions in one process
/// need none. Dropping the runtime stops the thread, waits for it and drops unfinished work.
#[derive(Default)]
pub struct LocalRuntime {
    shared: Arc<Shared>,
    /// Empty before the first use; none if the thread could not be started.
    thread: OnceLock<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// All unfinished work, so that it ends with the runtime.
    jobs: FxHashMap<u64, Arc<Job>>,
    ready: VecDeque<Arc<Job>>,
    /// What to wake, by time and number.
    timers: BTreeMap<(Instant, u64), Waker>,
    next: u64,
    /// When the sleeping thread wakes by itself.
    wakes_at: Option<Instant>,
    stopped: bool,
}

struct Job {
    number: u64,
    work: Mutex<Option<Work>>,
    is_ready: AtomicBool,
    shared: Weak<Shared>,
}

impl LocalRuntime {
    /// Starts the thread unless it runs. Without a thread nothing can run: then work is dropped and sleeps end at once.
    fn start(&self) {
        self.thread.get_or_init(|| {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("flowgrid-local".to_string());
            let started = thread.spawn(move || shared.run());
            started
                .inspect_err(|error| {
                    tracing::error!("cannot start a thread for background work: {error}");
                    self.shared.state.lock().stopped = true;
                })
                .ok()
        });
    }
}

impl Runtime for LocalRuntime {
    fn spawn(&self, work: Work) {
        self.start();
        let mut state = self.shared.state.lock();
        if state.stopped {
            return;
        }
        let number = state.number();
        let job = Job {
            number,
            work: Mutex::new(Some(work)),
            is_ready: AtomicBool::new(true),
            shared: Arc::downgrade(&self.shared),
        };
        let job = Arc::new(job);
        state.jobs.insert(number, job.clone());
        state.ready.push_back(job);
        self.shared.changed.notify_one();
    }

    fn sleep(&self, time: Duration) -> Work {
        self.start();
        // A time beyond what the clock can express never comes.
        match Instant::now().checked_add(time) {
            Some(end) => Box::pin(Sleep { shared: self.shared.clone(), end, timer: None }),
            None => Box::pin(std::future::pending()),
        }
    }
}

impl Drop for LocalRuntime {
    fn drop(&mut self) {
        let jobs = {
            let mut state = self.shared.state.lock();
            state.stopped = true;
            state.ready.clear();
            std::mem::take(&mut state.jobs)
        };
        self.shared.changed.notify_one();
        // Work that ends may hold the last reference to this runtime: its thread cannot wait for itself.
        if let Some(thread) = self.thread.take().flatten()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
        // The job that drops this runtime is locked, and ends by itself.
        for job in jobs.into_values() {
            let work = job.work.try_lock().and_then(|mut work| work.take());
            drop(work);
        }
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// What to wake now.
    fn due(&mut self) -> Vec<Waker> {
        let now = Instant::now();
        let mut due = Vec::new();
        while let Some(entry) = self.timers.first_entry().filter(|entry| entry.key().0 <= now) {
            due.push(entry.remove());
        }
        due
    }
}

impl Shared {
    fn run(&self) {
        while let Some(job) = self.next() {
            job.is_ready.store(false, Ordering::Release);
            if job.is_done() {
                self.state.lock().jobs.remove(&job.number);
            }
        }
    }

    /// The next job to poll; none when the runtime stops.
    fn next(&self) -> Option<Arc<Job>> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return None;
            }
            let due = state.due();
            if !due.is_empty() {
                // Wakers lock the state themselves.
                parking_lot::MutexGuard::unlocked(&mut state, || due.into_iter().for_each(Waker::wake));
                continue;
            }
            if let Some(job) = state.ready.pop_front() {
                return Some(job);
            }
            state.wakes_at = state.timers.keys().next().map(|(end, _)| *end);
            match state.wakes_at {
                Some(end) => drop(self.changed.wait_until(&mut state, end)),
                None => self.changed.wait(&mut state),
            }
        }
    }
}

impl Job {
    /// Polls the work once. A panic ends it, and no other work.
    fn is_done(self: &Arc<Self>) -> bool {
        let waker = Waker::from(self.clone());
        let mut slot = self.work.lock();
        let Some(work) = slot.as_mut() else { return true };
        let poll = || work.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        let is_done = catch_unwind(AssertUnwindSafe(poll)).unwrap_or(true);
        let done = if is_done { slot.take() } else { None };
        drop(slot);
        drop(done);
        is_done
    }
}

impl Wake for Job {
    fn wake(self: Arc<Self>) {
        let Some(shared) = self.shared.upgrade() else { return };
        if !self.is_ready.swap(true, Ordering::AcqRel) {
            shared.state.lock().ready.push_back(self);
            shared.changed.notify_one();
        }
    }
}

/// A timer; its entry goes when this is dropped.
struct Sleep {
    shared: Arc<Shared>,
    end: Instant,
    timer: Option<(Instant, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let shared = self.shared.clone();
        let mut state = shared.state.lock();
        if state.stopped || Instant::now() >= self.end {
            return Poll::Ready(());
        }
        let timer = self.timer.unwrap_or_else(|| (self.end, state.number()));
        self.timer = Some(timer);
        state.timers.insert(timer, context.waker().clone());
        if state.wakes_at.is_none_or(|wakes_at| timer.0 < wakes_at) {
            shared.changed.notify_one();
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.shared.state.lock().timers.remove(&timer);
        }
    }
}
