//! The function calls of a step: how deep they are, and which of them wait for a thread.

use crate::StepEnv;
use parking_lot::Mutex;
use status::{Result, exhausted};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The deepest nesting of calls. A function that calls itself without end would otherwise take all memory.
const MAX_DEPTH: usize = 10_000;

/// The most pipelines inside each other. Each one has functions of its own, so they would take all memory before calls nest
/// too deep.
const MAX_PIPELINES: usize = 100;

/// Down to this depth a call may run on the stack of its caller.
const ON_STACK: usize = 8;

/// After this many calls in a step, calls within calls no longer run on the stack of their caller: together they may
/// never end, and the caller may be a thread that serves the network.
const MAX_ON_STACK: usize = 4096;

type Work = Box<dyn FnOnce() + Send>;

/// How deep calls of functions are, and how many input pipelines they are in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Level {
    depth: usize,
    pipelines: usize,
}

impl Level {
    /// The level of the functions of a pipeline that begins here. Fails if pipelines nest too deep.
    pub fn in_pipeline(self) -> Result<Level> {
        if self.pipelines >= MAX_PIPELINES {
            return Err(exhausted!(
                "Input pipelines nest deeper than {MAX_PIPELINES}: functions of a pipeline run other pipelines"
            ));
        }
        Ok(Level { pipelines: self.pipelines + 1, ..self })
    }
}

/// The calls of a step as they are seen at one depth.
#[derive(Default)]
pub struct Calls {
    level: Level,
    /// What a called function sees; made by the first call at this depth.
    deeper: OnceLock<Arc<StepEnv>>,
    shared: Arc<Shared>,
}

/// What all depths have in common.
#[derive(Default)]
struct Shared {
    count: AtomicUsize,
    waiting: Mutex<Waiting>,
}

/// Work that waits. The newest goes first: then the calls that wait are at most those beside the ones on the way to it,
/// however many there will be.
#[derive(Default)]
struct Waiting {
    newest_last: Vec<Work>,
    has_thread: bool,
}

impl Calls {
    /// Calls that begin at a level.
    pub fn at(level: Level) -> Calls {
        Calls { level, deeper: OnceLock::new(), shared: Arc::default() }
    }

    /// How deep the calls are.
    pub fn level(&self) -> Level {
        self.level
    }

    fn one_deeper(&self) -> Calls {
        let level = Level { depth: self.level.depth + 1, ..self.level };
        Calls { level, deeper: OnceLock::new(), shared: self.shared.clone() }
    }
}

impl StepEnv {
    /// The same step for the body of a function that is called here. Fails if the calls nest too deep.
    pub fn called(&self, function: &str) -> Result<Arc<StepEnv>> {
        if self.calls.level.depth >= MAX_DEPTH {
            return Err(exhausted!(
                "Calls of functions nest deeper than {MAX_DEPTH}; the last is of function {function}"
            ));
        }
        Ok(self.calls.deeper.get_or_init(|| Arc::new(self.one_deeper())).clone())
    }

    fn one_deeper(&self) -> StepEnv {
        StepEnv {
            step_id: self.step_id,
            pool: self.pool.clone(),
            step_resources: self.step_resources.clone(),
            rendezvous: self.rendezvous.clone(),
            cancel: self.cancel.clone(),
            spawn: self.spawn.clone(),
            extensions: self.extensions.clone(),
            stats: self.stats.clone(),
            calls: self.calls.one_deeper(),
        }
    }

    /// Runs the body of a function whose environment this is: now, or on a thread of the step if the stack is deep or
    /// the step has made many calls.
    pub fn run_call(&self, work: impl FnOnce() + Send + 'static) {
        let calls = &self.calls;
        let is_short = calls.shared.count.fetch_add(1, Ordering::Relaxed) < MAX_ON_STACK;
        let depth = calls.level.depth;
        match depth <= 1 || (depth < ON_STACK && is_short) {
            true => work(),
            false => self.wait_for_thread(Box::new(work)),
        }
    }

    /// Hands the results of such a body to its caller. The results of nested calls would otherwise be handed on in nested
    /// callbacks.
    pub fn end_call(&self, work: impl FnOnce() + Send + 'static) {
        match self.calls.level.depth < ON_STACK {
            true => work(),
            false => self.wait_for_thread(Box::new(work)),
        }
    }

    fn wait_for_thread(&self, work: Work) {
        let shared = &self.calls.shared;
        let mut waiting = shared.waiting.lock();
        waiting.newest_last.push(work);
        if !std::mem::replace(&mut waiting.has_thread, true) {
            drop(waiting);
            let shared = shared.clone();
            (self.spawn)(Box::new(move || shared.run_all()));
        }
    }
}

impl Shared {
    fn run_all(&self) {
        while let Some(work) = self.next() {
            work();
        }
    }

    fn next(&self) -> Option<Work> {
        let mut waiting = self.waiting.lock();
        let next = waiting.newest_last.pop();
        waiting.has_thread = next.is_some();
        next
    }
}

impl Drop for Calls {
    /// Drops the environments of deeper calls one after another: nested, they would overflow the stack.
    fn drop(&mut self) {
        let mut next = self.deeper.take();
        while let Some(mut env) = next.and_then(Arc::into_inner) {
            next = env.calls.deeper.take();
        }
    }
}
