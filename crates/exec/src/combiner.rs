//! The combiner: the thread that currently owns the state of a run, applies outcomes to it and starts ready ops.

use crate::control_flow::argument;
use crate::core::{Core, Produced, Ready};
use crate::executor::{Execution, Message, State, Work};
use crate::kernel_call::{missing_input, panic_error};
use crate::program::{Kind, Node};
use op::{Cost, Ctx, Flow, Run, Value};
use status::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An op whose inputs have fewer elements than this in total is light: the combiner runs it itself.
const LIGHT_ELEMENTS: usize = 8192;

/// How many ops a thread outside the step's pool runs before it hands the combiner role over to a thread of the pool.
const OPS_BEFORE_HAND_OVER: usize = 16_384;

/// How combining ended.
pub(crate) enum Outcome {
    /// This thread has run enough ops; the number of messages received but not yet accounted for.
    BudgetSpent(usize),
    /// Nothing is left to do until another op finishes.
    InboxEmpty,
    /// The run has ended.
    Ended(Result<Vec<Option<Value>>>),
}

/// One thread's turn as the combiner of a run.
pub(crate) struct Combiner<'a> {
    execution: &'a Arc<Execution>,
    core: &'a mut Core,
    error: &'a mut Option<Error>,
    /// Messages received but not yet subtracted from `Execution::pending`.
    received: usize,
    on_step_thread: bool,
    /// A heavy op that this thread runs itself after combining, instead of waking another thread.
    pub own_work: Option<Work>,
    /// How many more ops this thread may run.
    budget: usize,
    /// The node being worked on: a panic is reported as its error.
    current: u32,
}

impl<'a> Combiner<'a> {
    pub fn new(
        execution: &'a Arc<Execution>,
        state: &'a mut State,
        received: usize,
        on_step_thread: bool,
    ) -> Combiner<'a> {
        let budget = if on_step_thread { usize::MAX } else { OPS_BEFORE_HAND_OVER };
        let State { core, error } = state;
        Combiner { execution, core, error, received, on_step_thread, own_work: None, budget, current: 0 }
    }

    /// Receives messages and starts ready ops until there are neither, the budget is spent, or the run has ended.
    pub fn run(&mut self) -> Outcome {
        loop {
            // A panic is an error of the op that was running, and of this step only.
            while let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.advance())) {
                let error = panic_error(&self.execution.program.nodes[self.current as usize], panic);
                self.fail(error);
            }
            if self.budget == 0 {
                return Outcome::BudgetSpent(self.received);
            }
            if !self.execution.inbox.is_empty() {
                continue;
            }
            if self.core.outstanding == 0 {
                return Outcome::Ended(self.result());
            }
            if self.execution.pending.fetch_sub(self.received, Ordering::AcqRel) == self.received {
                return Outcome::InboxEmpty;
            }
            self.received = 0;
        }
    }

    fn result(&mut self) -> Result<Vec<Option<Value>>> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.core.retire();
        Ok(std::mem::take(&mut self.core.results))
    }

    fn advance(&mut self) {
        while let Some(message) = self.execution.inbox.pop() {
            self.received += 1;
            self.receive(message);
        }
        while self.budget > 0
            && let Some(ready) = self.core.ready.pop()
        {
            self.current = ready.node;
            self.budget -= 1;
            self.dispatch(ready);
        }
    }

    fn receive(&mut self, message: Message) {
        let Message(ready, result) = message;
        self.current = ready.node;
        self.complete(ready, result);
    }

    fn complete(&mut self, ready: Ready, result: Result<Produced>) {
        match result {
            Ok(produced) => self.core.complete(&self.execution.program, ready, produced),
            Err(error) => self.fail(error),
        }
    }

    /// The first error stops the run: no further op starts, and ops that wait are cancelled.
    fn fail(&mut self, error: Error) {
        if self.error.is_none() {
            *self.error = Some(error.clone());
            self.execution.env.rendezvous.abort(error.clone());
            self.execution.env.cancel.cancel(error);
        }
        self.core.outstanding -= 1;
    }

    /// Runs a ready node if it is light or dead, else finds a thread for it.
    fn dispatch(&mut self, ready: Ready) {
        let execution = self.execution;
        let (program, env) = (&*execution.program, &*execution.env);
        if self.error.is_none() && env.cancel.is_cancelled() {
            *self.error = env.cancel.reason();
        }
        if self.error.is_some() {
            self.core.outstanding -= 1;
            return;
        }
        let node = &program.nodes[ready.node as usize];
        if ready.dead && node.kind != Kind::SeesDead {
            self.core.leave_inputs(program, &ready);
            return self.core.complete(program, ready, Produced::new());
        }
        let is_heavy = self.is_heavy(node, &ready);
        if !is_heavy
            && env.stats.is_none()
            && matches!(node.kernel.run, Run::Source(_) | Run::Unary(_) | Run::Binary(_))
        {
            return self.run_simple(node, ready);
        }
        let scheduled = env.stats.as_ref().map_or(0, |stats| stats.now());
        let inputs = self.core.take_inputs(program, &ready);
        let work = Work { ready, frame_key: self.core.key(&ready), inputs, scheduled };
        if !is_heavy {
            self.run_light(node, work);
        } else if self.on_step_thread && self.own_work.is_none() && self.core.ready.is_empty() {
            self.own_work = Some(work);
        } else {
            execution.spawn(work);
        }
    }

    #[inline]
    fn is_heavy(&mut self, node: &Node, ready: &Ready) -> bool {
        let program = &self.execution.program;
        match node.kernel.cost {
            Cost::Free => false,
            Cost::ByInput => self.core.input_elements(program, ready) >= LIGHT_ELEMENTS,
            Cost::Computed(work) => self.core.ask(program, ready, work) >= LIGHT_ELEMENTS,
            Cost::Heavy => true,
        }
    }

    /// Runs a light kernel of one output on its inputs in place. Most ops of most graphs are of this kind, so their
    /// values are not moved more often than needed. A panic of the kernel unwinds to `run`, which makes it an error.
    fn run_simple(&mut self, node: &Node, ready: Ready) {
        let execution = self.execution;
        let ctx = Ctx { env: &execution.env, frame: self.core.key(&ready), iteration: ready.iteration };
        let slots = execution.program.inputs(node);
        let values = self.core.values(&ready);
        let arity = match &node.kernel.run {
            Run::Unary(_) => 1,
            Run::Binary(_) => 2,
            _ => 0,
        };
        slots.iter().skip(arity).for_each(|&slot| values.leave(slot));
        let result = match (&node.kernel.run, slots) {
            (Run::Unary(run), &[x, ..]) => values.read(x).and_then(|x| run(&ctx, x)),
            (Run::Binary(run), &[x, y, ..]) => values.read(x).and_then(|x| run(&ctx, x, values.read(y)?)),
            (Run::Source(run), _) => run(&ctx),
            _ => Err(missing_input()),
        };
        match result {
            Ok(tensor) => self.core.complete_one(&execution.program, ready, Value::Tensor(tensor)),
            Err(error) => self.fail(error.at_node(&node.name)),
        }
    }

    /// Runs any other light op. An op that waits reports its outcome through the inbox later.
    fn run_light(&mut self, node: &Node, work: Work) {
        let ready = work.ready;
        let outcome = match &node.kernel.run {
            Run::Flow(Flow::Send(transfer)) => Some(self.execution.send(transfer, node, work)),
            Run::Flow(Flow::Recv(transfer)) => self.execution.recv(transfer, work),
            Run::Flow(Flow::Arg(index, dtype)) => {
                let value = self.core.args.get_mut(*index).and_then(Option::take);
                Some(argument(*index, *dtype, value).map_err(|error| error.at_node(&node.name)))
            }
            Run::Flow(Flow::Ret(index)) => {
                self.core.results[*index] = work.inputs.into_iter().next().flatten();
                Some(Ok(Produced::new()))
            }
            Run::Flow(flow) => Some(self.execution.run_flow(flow, node, work)),
            Run::Later(_) => self.execution.run_later(node, work),
            _ => Some(self.execution.run_kernel(node, work)),
        };
        if let Some(result) = outcome {
            self.complete(ready, result);
        }
    }
}
