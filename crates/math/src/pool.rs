//! The threads over which kernels split their loops.
//!
//! A general work-stealing pool makes the caller wait until a helper thread has woken up and checked its share, even when
//! the caller has finished the loop meanwhile; for loops of a hundred microseconds that wait is most of the time. Here a
//! helper thread joins a loop only if it wakes up in time, and the caller does not wait for one that does not.

use std::any::Any;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, Thread};

/// The number of times an idle helper thread checks for the next loop before it sleeps: about 40 microseconds in total. Ops
/// of one step follow each other faster than that, and waking a sleeping thread costs small matrix products half of their
/// speed. A longer spin would take the processor from other tasks while this one waits for tensors.
const LOOKS: usize = 16;
/// The number of pause instructions between two checks. A yield would give up the rest of the time slice.
const PAUSES: usize = 128;

/// The number of times a caller checks for the end of the last chunk before it sleeps.
const SPINS_BEFORE_PARK: usize = 2000;

/// Helper threads beside the calling one.
///
/// The caller always takes part in its own loop, so a pool of one has no threads at all, and a loop
/// makes progress even when every helper is busy elsewhere. Dropping the pool ends its threads.
pub struct Pool {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

impl Pool {
    /// A pool in which a loop runs on at most `threads` threads, the calling one among them.
    pub fn new(threads: usize) -> Pool {
        let shared = Arc::new(Shared::default());
        let start = |number: usize| {
            let shared = shared.clone();
            thread::Builder::new().name(format!("flowgrid-math-{number}")).spawn(move || shared.help()).ok()
        };
        let helpers = (1..threads.max(1)).map_while(start).collect();
        Pool { shared, helpers }
    }

    /// On how many threads a loop may run.
    pub fn threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Calls `body(i)` once for every `i` below `chunks`, in any order, on several threads at once.
    pub fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        if self.helpers.is_empty() || chunks <= 1 {
            return (0..chunks).for_each(body);
        }
        let work = Arc::new(Work::new(chunks, body));
        self.shared.publish(&work, chunks - 1);
        let own = catch_unwind(AssertUnwindSafe(|| work.take_part(body)));
        self.shared.withdraw(&work);
        work.close();
        let theirs = work.lock_panic().take();
        if let Err(panic) = own {
            resume_unwind(panic);
        }
        if let Some(panic) = theirs {
            resume_unwind(panic);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.wake.notify_all();
        for helper in self.helpers.drain(..) {
            // A helper catches what its loops throw, so there is nothing to hear of here.
            let _ = helper.join();
        }
    }
}

/// What the helpers look at.
#[derive(Default)]
struct Shared {
    board: Mutex<Board>,
    /// How many loops are on the board, to look without a lock.
    open: AtomicUsize,
    wake: Condvar,
}

/// The loops that want help.
#[derive(Default)]
struct Board {
    works: Vec<Arc<Work>>,
    sleeping: usize,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, work: &Arc<Work>, wanted: usize) {
        let sleeping = {
            let mut board = self.lock();
            board.works.push(work.clone());
            self.open.store(board.works.len(), Ordering::Release);
            board.sleeping
        };
        for _ in 0..wanted.min(sleeping) {
            self.wake.notify_one();
        }
    }

    fn withdraw(&self, work: &Arc<Work>) {
        let mut board = self.lock();
        board.works.retain(|other| !Arc::ptr_eq(other, work));
        self.open.store(board.works.len(), Ordering::Release);
    }

    /// The life of a helper.
    fn help(&self) {
        while let Some(work) = self.next() {
            if work.enter() {
                work.help();
                work.leave();
            }
        }
    }

    /// The next loop that has chunks left; none when the pool ends.
    fn next(&self) -> Option<Arc<Work>> {
        for _ in 0..LOOKS {
            if self.open.load(Ordering::Acquire) > 0
                && let Some(work) = self.lock().find()
            {
                return Some(work);
            }
            (0..PAUSES).for_each(|_| spin_loop());
        }
        let mut board = self.lock();
        loop {
            if board.ended {
                return None;
            }
            if let Some(work) = board.find() {
                return Some(work);
            }
            board.sleeping += 1;
            board = self.wake.wait(board).unwrap_or_else(PoisonError::into_inner);
            board.sleeping -= 1;
        }
    }
}

impl Board {
    fn find(&self) -> Option<Arc<Work>> {
        self.works.iter().find(|work| work.has_chunks()).cloned()
    }
}

/// One loop.
struct Work {
    /// Valid until `close` returns: the caller keeps the closure alive that long.
    body: *const (dyn Fn(usize) + Sync + 'static),
    chunks: usize,
    next: AtomicUsize,
    /// Helpers inside, plus `CLOSED`.
    inside: AtomicUsize,
    caller: Thread,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    stopped: AtomicBool,
}

/// No helper may enter any more.
const CLOSED: usize = 1 << (usize::BITS - 1);

// SAFETY: `body` points to something `Sync`, and is followed only by helpers that entered before the loop was closed.
unsafe impl Send for Work {}
// SAFETY: as above; everything else in it is `Sync` by itself.
unsafe impl Sync for Work {}

impl Work {
    fn new(chunks: usize, body: &(dyn Fn(usize) + Sync)) -> Work {
        let body: *const (dyn Fn(usize) + Sync) = body;
        // SAFETY: only the lifetime changes; `run` does not return before `close`, after which no thread dereferences the pointer.
        let body = unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync), *const (dyn Fn(usize) + Sync + 'static)>(body)
        };
        Work {
            body,
            chunks,
            next: AtomicUsize::new(0),
            inside: AtomicUsize::new(0),
            caller: thread::current(),
            panic: Mutex::new(None),
            stopped: AtomicBool::new(false),
        }
    }

    fn has_chunks(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.chunks
    }

    fn lock_panic(&self) -> MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs chunks until none is left, or until one of another thread has panicked.
    fn take_part(&self, body: &(dyn Fn(usize) + Sync)) {
        while !self.stopped.load(Ordering::Relaxed) {
            let chunk = self.next.fetch_add(1, Ordering::Relaxed);
            if chunk >= self.chunks {
                return;
            }
            body(chunk);
        }
    }

    fn enter(&self) -> bool {
        let before = self.inside.fetch_add(1, Ordering::AcqRel);
        if before & CLOSED != 0 {
            self.leave();
            return false;
        }
        true
    }

    fn help(&self) {
        // SAFETY: this helper has entered, so the caller is still in `run` and the closure alive.
        let body = unsafe { &*self.body };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.take_part(body))) {
            self.stopped.store(true, Ordering::Relaxed);
            *self.lock_panic() = Some(panic);
        }
    }

    fn leave(&self) {
        if self.inside.fetch_sub(1, Ordering::AcqRel) == CLOSED + 1 {
            self.caller.unpark();
        }
    }

    /// Admits no further threads and waits for those inside to leave.
    fn close(&self) {
        let mut inside = self.inside.fetch_or(CLOSED, Ordering::AcqRel);
        let mut looks = 0;
        while inside & !CLOSED != 0 {
            looks += 1;
            if looks < SPINS_BEFORE_PARK {
                spin_loop()
            } else {
                thread::park()
            }
            inside = self.inside.load(Ordering::Acquire);
        }
    }
}
