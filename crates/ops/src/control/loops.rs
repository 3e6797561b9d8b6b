//! While and For: loops whose condition and body are functions.

use crate::control::call::truth;
use graph::FunctionCall;
use op::shapes::unchanged;
use op::{Callable, Ctx, Done, Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, StepEnv, Value, later};
use parking_lot::Mutex;
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "While(input: [T]) -> output: [T]; T: list(type) >= 0; cond: func; body: func; \
              output_shapes: list(shape) = []; parallel_iterations: int = 10; stateful",
        shape: loop_shape,
        grad: Grad::Unknown,
        kernel: while_kernel,
        facts: PLAIN.calls(FunctionCall::While),
    },
    Op {
        def: "StatelessWhile(input: [T]) -> output: [T]; T: list(type) >= 0; cond: func; body: func; \
              output_shapes: list(shape) = []; parallel_iterations: int = 10",
        shape: loop_shape,
        grad: Grad::Unknown,
        kernel: while_kernel,
        facts: PLAIN.calls(FunctionCall::While),
    },
    Op {
        def: "For(start: int32, limit: int32, delta: int32, input: [T]) -> output: [T]; T: list(type) >= 0; body: func",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: for_kernel,
        facts: PLAIN,
    },
];

fn loop_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::unknown(); query.outputs])
}

fn while_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (cond, body) = (setup.function("cond")?, setup.function("body")?);
    Ok(later(move |ctx, mut inputs, done| {
        let state = (0..inputs.len()).map(|index| inputs.take(index)).collect::<Result<Outputs>>();
        match state {
            Ok(state) => Loop::begin(ctx, Control::While(cond.clone()), body.clone(), state, done),
            Err(error) => done(Err(error)),
        }
    }))
}

fn for_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let body = setup.function("body")?;
    Ok(later(move |ctx, mut inputs, done| match read_range(&mut inputs) {
        Ok((control, state)) => Loop::begin(ctx, control, body.clone(), state, done),
        Err(error) => done(Err(error)),
    }))
}

fn read_range(inputs: &mut Inputs) -> Result<(Control, Outputs)> {
    let mut number = |index: usize, name: &str| {
        let value = inputs.tensor(index)?;
        match value.shape().rank() {
            0 => value.to_scalar::<i32>(),
            _ => Err(invalid!("{name} must be a scalar, but {}", value.shape())),
        }
    };
    let (start, limit, delta) = (number(0, "start")?, number(1, "limit")?, number(2, "delta")?);
    if (delta > 0 && start <= limit) || (delta < 0 && start >= limit) || (delta == 0 && start == limit) {
        let state = (3..inputs.len()).map(|index| inputs.take(index)).collect::<Result<_>>()?;
        return Ok((Control::For { limit, delta, next: Mutex::new(start) }, state));
    }
    Err(invalid!("Invalid start/limit/delta: {start} {limit} {delta}"))
}

/// Decides whether another iteration follows.
enum Control {
    While(Arc<dyn Callable>),
    For { limit: i32, delta: i32, next: Mutex<i32> },
}

impl Control {
    fn name(&self) -> &'static str {
        match self {
            Control::While(_) => "While",
            Control::For { .. } => "For",
        }
    }
}

/// The number of function calls after which the loop continues on another thread, which bounds the stack depth.
const ROUNDS: usize = 1024;

/// A running loop. Rounds follow each other in `advance`, not by recursion, however the functions answer.
struct Loop {
    env: Arc<StepEnv>,
    frame: u64,
    iteration: u64,
    control: Control,
    body: Arc<dyn Callable>,
    /// How many values go round.
    arity: usize,
    state: Mutex<Outputs>,
    done: Mutex<Option<Done>>,
}

/// Which function has just answered.
enum Answer {
    Start,
    Cond(Result<Outputs>),
    Body(Result<Outputs>),
}

/// The result of a function, if it was available before the caller stopped waiting for it.
enum Slot {
    Empty,
    Full(Result<Outputs>),
    Abandoned,
}

impl Loop {
    fn begin(ctx: &Ctx<'_>, control: Control, body: Arc<dyn Callable>, state: Outputs, done: Done) {
        let running = Arc::new(Loop {
            env: ctx.env.clone(),
            frame: ctx.frame,
            iteration: ctx.iteration,
            control,
            body,
            arity: state.len(),
            state: Mutex::new(state),
            done: Mutex::new(Some(done)),
        });
        running.advance(Answer::Start);
    }

    fn advance(self: Arc<Self>, mut answer: Answer) {
        for _ in 0..ROUNDS {
            let called = match answer {
                Answer::Start => self.ask(),
                Answer::Body(Ok(state)) => {
                    if state.len() != self.arity {
                        let (kind, found, wanted) = (self.control.name(), state.len(), self.arity);
                        let text = format!("{kind} loop body returned {found} arguments. Expected: {wanted}");
                        return self.finish(Err(invalid!("{text}")));
                    }
                    *self.state.lock() = state;
                    self.ask()
                }
                Answer::Cond(Ok(outputs)) => match self.holds(outputs) {
                    Ok(true) => self.call(self.body.clone(), None, Answer::Body),
                    Ok(false) => return self.finish(Ok(std::mem::take(&mut self.state.lock()))),
                    Err(error) => return self.finish(Err(error)),
                },
                Answer::Cond(Err(error)) | Answer::Body(Err(error)) => return self.finish(Err(error)),
            };
            match called {
                Some(next) => answer = next,
                None => return,
            }
        }
        // The thread may be one that moves messages: a loop that may never end must not keep it.
        let spawn = self.env.spawn.clone();
        spawn(Box::new(move || self.advance(answer)));
    }

    /// Decides on the next round, by asking the condition or by counting.
    fn ask(self: &Arc<Self>) -> Option<Answer> {
        match &self.control {
            Control::While(cond) => self.call(cond.clone(), None, Answer::Cond),
            Control::For { limit, delta, next } => {
                let index = {
                    let mut next = next.lock();
                    let index = *next;
                    *next = next.saturating_add(*delta);
                    index
                };
                let over = if *delta > 0 { index >= *limit } else { index <= *limit };
                if over {
                    self.finish(Ok(std::mem::take(&mut self.state.lock())));
                    return None;
                }
                self.call(self.body.clone(), Some(Tensor::scalar(index)), Answer::Body)
            }
        }
    }

    /// Calls a function with the loop's state. Returns its result if it is available at once; otherwise the callback
    /// continues the loop.
    fn call(
        self: &Arc<Self>,
        function: Arc<dyn Callable>,
        first: Option<Tensor>,
        wrap: fn(Result<Outputs>) -> Answer,
    ) -> Option<Answer> {
        if let Some(reason) = self.env.cancel.reason() {
            return Some(wrap(Err(reason)));
        }
        // The body returns a new state, so it may own the old one and write in place.
        let is_body = Arc::ptr_eq(&function, &self.body);
        let state = match is_body {
            true => std::mem::take(&mut *self.state.lock()),
            false => self.state.lock().clone(),
        };
        let args: Inputs = first.map(Value::Tensor).into_iter().chain(state).collect();
        let slot = Arc::new(Mutex::new(Slot::Empty));
        let (running, filled) = (self.clone(), slot.clone());
        let done = Box::new(move |result| {
            let mut slot = filled.lock();
            if matches!(*slot, Slot::Abandoned) {
                drop(slot);
                running.advance(wrap(result));
            } else {
                *slot = Slot::Full(result);
            }
        });
        let ctx = Ctx { env: &self.env, frame: self.frame, iteration: self.iteration };
        function.call(&ctx, args, done);
        match std::mem::replace(&mut *slot.lock(), Slot::Abandoned) {
            Slot::Full(result) => Some(wrap(result)),
            _ => None,
        }
    }

    fn holds(&self, mut outputs: Outputs) -> Result<bool> {
        match outputs.pop() {
            Some(Value::Tensor(tensor)) if outputs.is_empty() => truth(&tensor),
            found => Err(invalid!(
                "Expected a single scalar return value from WhileOp cond, got {} tensors.",
                outputs.len() + usize::from(found.is_some())
            )),
        }
    }

    fn finish(&self, result: Result<Outputs>) {
        if let Some(done) = self.done.lock().take() {
            done(result);
        }
    }
}
