//! Functions that a dataset applies to its elements.

use crate::function_chain::{Chain, Join, Part};
use crate::{Element, Pipeline, PollContext};
use graph::{AttrValue, Signatures};
use op::{Callable, Cancel, Ctx, Inputs, Outputs, Setup, StepEnv, Value};
use parking_lot::Mutex;
use status::{Result, cancelled, internal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use tensor::Tensor;

/// A function in an attribute, with the values that it captured.
#[derive(Clone)]
pub struct Function {
    name: Arc<str>,
    callable: Arc<dyn Callable>,
    captured: Arc<[Tensor]>,
    /// The callable, if it calls other functions one after the other.
    chain: Option<Arc<Chain>>,
}

impl Function {
    /// The function of an attribute, which has captured nothing yet.
    pub fn of(setup: &Setup<'_>, attr: &str) -> Result<Function> {
        let name = match setup.attr(attr)? {
            AttrValue::Func(function) => function.name.as_str().into(),
            _ => attr.into(),
        };
        Ok(Function::new(name, setup.function(attr)?))
    }

    /// The functions of an attribute that is a list.
    pub fn list_of(setup: &Setup<'_>, attr: &str) -> Result<Vec<Function>> {
        let functions = setup.list(attr)?.funcs.iter();
        let function = |function: &Arc<graph::Function>| {
            let (name, callable) = (function.name.as_str().into(), setup.instantiate(function)?);
            Ok(Function::new(name, callable))
        };
        functions.map(function).collect()
    }

    fn new(name: Arc<str>, callable: Arc<dyn Callable>) -> Function {
        Function { name, callable, captured: Arc::new([]), chain: None }
    }

    /// Calls the second function with the results of the first. None if one has captured values.
    pub(crate) fn chain(first: &Function, second: &Function) -> Option<Function> {
        Function::joined(first, second, Join::Compose)
    }

    /// True if both predicates are. The second is called only if the first is true. None if one has captured values.
    pub(crate) fn conjunction(first: &Function, second: &Function) -> Option<Function> {
        Function::joined(first, second, Join::All)
    }

    /// The results of a function, followed by what a predicate returns for them. None if one has captured values.
    pub(crate) fn with_predicate(function: &Function, predicate: &Function) -> Option<Function> {
        Function::joined(function, predicate, Join::Append)
    }

    fn joined(first: &Function, second: &Function, join: Join) -> Option<Function> {
        if !(first.captured.is_empty() && second.captured.is_empty()) {
            return None;
        }
        let mut functions = first.parts(join);
        functions.extend(second.parts(join));
        let chain = Arc::new(Chain::new(functions, join));
        Some(Function { chain: Some(chain.clone()), ..Function::new(first.name.clone(), chain) })
    }

    /// The functions that it calls one after the other: long chains must not call each other.
    fn parts(&self, join: Join) -> Vec<Arc<dyn Callable>> {
        let parts = self.chain.as_ref().filter(|_| join != Join::Append).and_then(|chain| chain.functions(join));
        parts.map_or_else(|| vec![self.callable.clone()], <[_]>::to_vec)
    }

    /// Returns its last argument.
    pub(crate) fn last() -> Function {
        Function::new("last".into(), Arc::new(Part::Last))
    }

    /// Returns its arguments but the last.
    pub(crate) fn all_but_last() -> Function {
        Function::new("all_but_last".into(), Arc::new(Part::AllButLast))
    }

    /// True if the function is known to do nothing but return its arguments.
    pub(crate) fn is_identity(&self) -> bool {
        self.captured.is_empty() && self.callable.is_identity() && !self.has_effects(&[])
    }

    /// True if it may matter when and in which order the function is called, as in TensorFlow: assertions do not count.
    pub(crate) fn is_stateful(&self) -> bool {
        self.has_effects(&["Assert"])
    }

    /// True if the function may have effects but its results, other than those of some ops.
    fn has_effects(&self, except: &[&str]) -> bool {
        // What the functions do that these ops call is looked at, too.
        const CALLERS: [&str; 2] = ["If", "While"];
        let registry = crate::registry();
        let counts = |op: &str| !CALLERS.contains(&op) && !except.contains(&op);
        self.callable.has_op(&|op| counts(op) && registry.signature(op).is_none_or(|signature| signature.stateful))
    }

    /// The same function with captured values, which follow the arguments of each call.
    pub fn capture(&self, captured: Vec<Tensor>) -> Function {
        Function { captured: captured.into(), ..self.clone() }
    }

    /// The name in the library of the graph.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// True if the function, or one that it uses, has a node whose op passes the test.
    pub fn has_op(&self, test: &dyn Fn(&str) -> bool) -> bool {
        self.callable.has_op(test)
    }

    /// The function with state of its own, for the iterators of one pipeline.
    pub fn in_pipeline(&self, pipeline: &Arc<Pipeline>) -> Result<FunctionRun> {
        let callable = self.callable.fork(&pipeline.forks)?;
        let (captured, pipeline) = (self.captured.clone(), pipeline.clone());
        Ok(FunctionRun { callable, captured, pipeline, spare: Arc::default(), slow_calls: Arc::default() })
    }
}

/// A function as the iterators of a pipeline call it.
#[derive(Clone)]
pub struct FunctionRun {
    callable: Arc<dyn Callable>,
    captured: Arc<[Tensor]>,
    pipeline: Arc<Pipeline>,
    /// Environments of calls that have ended, for the next calls.
    spare: Arc<Mutex<Vec<Environment>>>,
    /// The number of calls by `call_soon` that took long.
    slow_calls: Arc<AtomicUsize>,
}

/// The environment of calls that follow each other.
struct Environment {
    env: Arc<StepEnv>,
    uses: usize,
}

/// How often an environment is used: functions that call others leave the stack of their caller after many calls.
const MOST_USES: usize = 1000;
/// How many environments are kept for the next calls.
const MOST_SPARE: usize = 64;
/// A call that takes longer pays for its way to another thread.
const LONG: Duration = Duration::from_micros(20);
/// After this many long calls a function is called on other threads only. The first call prepares the function.
const MOST_SLOW_CALLS: usize = 3;

impl FunctionRun {
    /// Begins a call on this thread; often it has ended when this returns.
    pub fn call(&self, arguments: Element) -> Call {
        let slot = Arc::new(Slot::default());
        let environment = self.environment();
        let call = Call { slot: slot.clone(), cancel: environment.env.cancel.clone() };
        self.begin(environment, slot, arguments);
        call
    }

    /// True unless calls of this function took long.
    pub(crate) fn is_short(&self) -> bool {
        self.slow_calls.load(Ordering::Relaxed) < MOST_SLOW_CALLS
    }

    /// Begins a call, on another thread unless calls of this function are short.
    pub fn call_soon(&self, arguments: Element) -> Call {
        if !self.is_short() {
            return self.call_in_background(arguments);
        }
        let start = Instant::now();
        let call = self.call(arguments);
        if start.elapsed() > LONG || !call.is_ready() {
            self.slow_calls.fetch_add(1, Ordering::Relaxed);
        }
        call
    }

    /// Begins a call on another thread.
    pub fn call_in_background(&self, arguments: Element) -> Call {
        let slot = Arc::new(Slot::default());
        let environment = self.environment();
        let call = Call { slot: slot.clone(), cancel: environment.env.cancel.clone() };
        let function = self.clone();
        (self.pipeline.spawn())(Box::new(move || function.begin(environment, slot, arguments)));
        call
    }

    fn begin(&self, environment: Environment, slot: Arc<Slot>, arguments: Element) {
        let captured = self.captured.iter().cloned();
        let inputs: Inputs = arguments.into_iter().chain(captured).map(Value::Tensor).collect();
        let (env, spare) = (environment.env.clone(), self.spare.clone());
        let done = move |result: Result<Outputs>| {
            let has_succeeded = result.is_ok();
            // A call that was dropped may be cancelling its environment right now, so no other call may get it.
            if slot.finish(result) && has_succeeded {
                keep(&spare, environment);
            }
        };
        self.callable.call(&Ctx { env: &env, frame: 0, iteration: 0 }, inputs, Box::new(done));
    }

    /// The environment of a call.
    fn environment(&self) -> Environment {
        let spare = self.spare.lock().pop();
        spare.unwrap_or_else(|| Environment { env: self.pipeline.call_env(), uses: 0 })
    }
}

/// Keeps the environment of a call that has ended, unless the call left something in it.
fn keep(spare: &Mutex<Vec<Environment>>, environment: Environment) {
    let Environment { env, uses } = environment;
    if uses >= MOST_USES || env.cancel.is_cancelled() || env.step_resources.has_container("") {
        return;
    }
    let mut spare = spare.lock();
    if spare.len() < MOST_SPARE {
        spare.push(Environment { env, uses: uses + 1 });
    }
}

/// A call of a function; dropping it cancels the call.
pub struct Call {
    slot: Arc<Slot>,
    cancel: Arc<Cancel>,
}

impl Call {
    /// Begins work of our own on another thread.
    pub fn in_background(pipeline: &Arc<Pipeline>, work: impl FnOnce() -> Result<Element> + Send + 'static) -> Call {
        let slot = Arc::new(Slot::default());
        let call = Call { slot: slot.clone(), cancel: Arc::default() };
        (pipeline.spawn())(Box::new(move || {
            let worked = catch_unwind(AssertUnwindSafe(work));
            let result = worked.unwrap_or_else(|_| Err(internal!("The input pipeline failed unexpectedly")));
            slot.finish(result.map(|element| element.into_iter().map(Value::Tensor).collect()));
        }));
        call
    }

    /// The results, once they are there. Returns them only once.
    pub fn poll(&mut self, ctx: &PollContext<'_>) -> Poll<Result<Element>> {
        let mut state = self.slot.0.lock();
        match state.result.take() {
            Some(result) => Poll::Ready(result.and_then(tensors)),
            None => {
                state.waker = Some(ctx.waker.clone());
                Poll::Pending
            }
        }
    }

    /// Waits until `poll` would return the results.
    pub fn poll_ready(&self, ctx: &PollContext<'_>) -> Poll<()> {
        let mut state = self.slot.0.lock();
        if state.result.is_some() {
            return Poll::Ready(());
        }
        state.waker = Some(ctx.waker.clone());
        Poll::Pending
    }

    /// Lets the call run to its end, which nothing waits for; an error is logged.
    pub fn detach(self) {
        let mut state = self.slot.0.lock();
        (state.ended, state.detached) = (true, true);
        state.log_if_detached();
    }

    /// True if `poll` would return the results.
    pub fn is_ready(&self) -> bool {
        self.slot.0.lock().result.is_some()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut state = self.slot.0.lock();
        if state.ended {
            return;
        }
        state.dropped = true;
        drop(state); // what is cancelled may finish the call
        self.cancel.cancel(cancelled!("Function call was cancelled"));
    }
}

/// Where a call leaves its result.
#[derive(Default)]
struct Slot(Mutex<SlotState>);

#[derive(Default)]
struct SlotState {
    result: Option<Result<Outputs>>,
    /// Dropping the call does not cancel it any more.
    ended: bool,
    detached: bool,
    /// The call was dropped before its end.
    dropped: bool,
    waker: Option<Waker>,
}

impl SlotState {
    fn log_if_detached(&self) {
        if let (true, Some(Err(error))) = (self.detached, &self.result) {
            tracing::warn!("a function of an input pipeline failed after the end of its iterator: {error}");
        }
    }
}

impl Slot {
    /// Stores the result; false if the call was dropped before.
    fn finish(&self, result: Result<Outputs>) -> bool {
        let (waker, dropped) = {
            let mut state = self.0.lock();
            state.result = Some(result);
            state.ended = true;
            state.log_if_detached();
            (state.waker.take(), state.dropped)
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        !dropped
    }
}

fn tensors(outputs: Outputs) -> Result<Element> {
    outputs.into_iter().map(Value::read).collect()
}
