//! Runs a compiled program: a node runs as soon as its inputs are there, until no node is left.
//!
//! The state of a run (`Core`) belongs to one thread at a time, the *combiner*. A thread that finishes an op pushes the
//! outcome into an inbox. If the inbox was empty, that thread becomes the combiner: it applies the outcomes to the state
//! and runs the light ops that became ready (`combiner.rs`). Otherwise the current combiner finds the outcome in the
//! inbox. So a ready op never waits for a contended lock, and a thread that delivers an outcome never blocks.

use crate::combiner::{Combiner, Outcome};
use crate::core::{Core, Produced, Ready};
use crate::program::Program;
use crossbeam_queue::SegQueue;
use op::{StepEnv, Value};
use parking_lot::Mutex;
use smallvec::SmallVec;
use status::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Called once, when the run has ended: with the results of a function, or with the first error.
pub type Finish = Box<dyn FnOnce(Result<Vec<Option<Value>>>) + Send>;

/// What a run needs besides its program.
pub struct RunOptions {
    /// What the kernels of the step share.
    pub env: Arc<StepEnv>,
    /// The arguments, if the program is the body of a function.
    pub args: Vec<Option<Value>>,
}

/// Runs a program. Light ops run before this returns; heavy ops run on the threads of the step.
pub fn run(program: Arc<Program>, options: RunOptions, finish: Finish) {
    let core = Core::new(program.clone(), options.args);
    let execution = Arc::new(Execution {
        program,
        env: options.env,
        state: Mutex::new(State { core, error: None }),
        inbox: SegQueue::new(),
        pending: AtomicUsize::new(1), // the beginning, which `begin` accounts for
        finish: Mutex::new(Some(finish)),
    });
    execution.begin();
}

/// One run of a program, shared by the threads that work on it.
pub(crate) struct Execution {
    pub program: Arc<Program>,
    pub env: Arc<StepEnv>,
    /// Only the combiner locks it, so the lock is never contended.
    state: Mutex<State>,
    pub inbox: SegQueue<Message>,
    /// The number of messages that no combiner has accounted for. Zero means that there is no combiner.
    pub pending: AtomicUsize,
    finish: Mutex<Option<Finish>>,
}

/// What the combiner owns.
pub(crate) struct State {
    pub core: Core,
    /// The first error of the run. Once it is set, no further op starts.
    pub error: Option<Error>,
}

/// What a thread delivers to the combiner: an op has run.
pub(crate) struct Message(pub Ready, pub Result<Produced>);

/// An op to run, with its inputs.
pub(crate) struct Work {
    pub ready: Ready,
    /// The frame of the op, as it appears in rendezvous keys.
    pub frame_key: u64,
    pub inputs: SmallVec<[Option<Value>; 4]>,
    /// When the op became ready, for the trace.
    pub scheduled: u64,
}

/// What a thread does after combining.
enum Next {
    /// Run this heavy op.
    Run(Work),
    /// Let another thread combine. The number is that of the messages received but not yet accounted for.
    HandOver(usize),
    Nothing,
}

impl Execution {
    /// Works on a new run. Most bodies of functions end here, so nothing goes through the inbox, which would allocate.
    fn begin(self: &Arc<Self>) {
        match self.combine(1, false) {
            Next::Run(work) => {
                let message = self.execute(work);
                self.drive(message, false);
            }
            Next::HandOver(received) => self.hand_over(received),
            Next::Nothing => {}
        }
    }

    /// Delivers a message, then works on the run for as long as there is something for this thread to do.
    /// `on_step_thread` says that this is one of the threads for heavy ops.
    pub fn drive(self: &Arc<Self>, message: Message, on_step_thread: bool) {
        let mut message = message;
        loop {
            self.inbox.push(message);
            if self.pending.fetch_add(1, Ordering::AcqRel) > 0 {
                return;
            }
            match self.combine(0, on_step_thread) {
                Next::Run(work) => message = self.execute(work),
                Next::HandOver(received) => return self.hand_over(received),
                Next::Nothing => return,
            }
        }
    }

    /// Runs a heavy op on a thread of the step.
    pub fn spawn(self: &Arc<Self>, work: Work) {
        let execution = self.clone();
        (self.env.spawn)(Box::new(move || {
            let message = execution.execute(work);
            execution.drive(message, true);
        }));
    }

    /// Continues combining on a thread of the step. A thread that serves the network must not stay in a loop of the
    /// graph that may never end.
    fn hand_over(self: &Arc<Self>, received: usize) {
        let execution = self.clone();
        (self.env.spawn)(Box::new(move || match execution.combine(received, true) {
            Next::Run(work) => {
                let message = execution.execute(work);
                execution.drive(message, true);
            }
            Next::HandOver(received) => execution.hand_over(received),
            Next::Nothing => {}
        }));
    }

    /// Is the combiner until the inbox is empty; `received` messages were received by the combiner before.
    fn combine(self: &Arc<Self>, received: usize, on_step_thread: bool) -> Next {
        let mut state = self.state.lock();
        let mut combiner = Combiner::new(self, &mut state, received, on_step_thread);
        let outcome = combiner.run();
        let own_work = combiner.own_work.take();
        drop(state);
        match outcome {
            Outcome::BudgetSpent(received) => return Next::HandOver(received),
            Outcome::InboxEmpty => {}
            Outcome::Ended(result) => {
                // The callback runs without the lock: it may start the next step right away.
                let finish = self.finish.lock().take();
                if let Some(finish) = finish {
                    finish(result);
                }
            }
        }
        own_work.map_or(Next::Nothing, Next::Run)
    }
}
