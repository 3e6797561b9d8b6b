//! Functions that a dataset applies to its elements.

use crate::{Element, Pipeline, PollContext};
use graph::AttrValue;
use op::{Callable, Cancel, Ctx, Inputs, Outputs, Setup, Value};
use parking_lot::Mutex;
use status::{Result, cancelled, internal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Poll, Waker};
use tensor::Tensor;

/// A function in an attribute, with the values that it captured.
#[derive(Clone)]
pub struct Function {
    name: Arc<str>,
    callable: Arc<dyn Callable>,
    captured: Arc<[Tensor]>,
}

impl Function {
    /// The function of an attribute, which has captured nothing yet.
    pub fn of(setup: &Setup<'_>, attr: &str) -> Result<Function> {
        let name = match setup.attr(attr)? {
            AttrValue::Func(function) => function.name.as_str().into(),
            _ => attr.into(),
        };
        Ok(Function { name, callable: setup.function(attr)?, captured: Arc::new([]) })
    }

    /// The functions of an attribute that is a list.
    pub fn list_of(setup: &Setup<'_>, attr: &str) -> Result<Vec<Function>> {
        let functions = setup.list(attr)?.funcs.iter();
        let function = |function: &Arc<graph::Function>| {
            let (name, callable) = (function.name.as_str().into(), setup.instantiate(function)?);
            Ok(Function { name, callable, captured: Arc::new([]) })
        };
        functions.map(function).collect()
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
        Ok(FunctionRun { callable, captured: self.captured.clone(), pipeline: pipeline.clone() })
    }
}

/// A function as the iterators of a pipeline call it.
#[derive(Clone)]
pub struct FunctionRun {
    callable: Arc<dyn Callable>,
    captured: Arc<[Tensor]>,
    pipeline: Arc<Pipeline>,
}

impl FunctionRun {
    /// Begins a call on this thread; often it has ended when this returns.
    pub fn call(&self, arguments: Element) -> Call {
        let slot = Arc::new(Slot::default());
        let env = self.pipeline.call_env();
        let call = Call { slot: slot.clone(), cancel: env.cancel.clone() };
        self.begin(&env, slot, arguments);
        call
    }

    /// Begins a call on another thread.
    pub fn call_in_background(&self, arguments: Element) -> Call {
        let slot = Arc::new(Slot::default());
        let env = self.pipeline.call_env();
        let call = Call { slot: slot.clone(), cancel: env.cancel.clone() };
        let function = self.clone();
        (self.pipeline.spawn())(Box::new(move || function.begin(&env, slot, arguments)));
        call
    }

    fn begin(&self, env: &Arc<op::StepEnv>, slot: Arc<Slot>, arguments: Element) {
        let captured = self.captured.iter().cloned();
        let inputs: Inputs = arguments.into_iter().chain(captured).map(Value::Tensor).collect();
        let ctx = Ctx { env, frame: 0, iteration: 0 };
        self.callable.call(&ctx, inputs, Box::new(move |result| slot.finish(result)));
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

    /// True if `poll` would return the results.
    pub fn is_ready(&self) -> bool {
        self.slot.0.lock().result.is_some()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.slot.0.lock().ended {
            self.cancel.cancel(cancelled!("Function call was cancelled"));
        }
    }
}

/// Where a call leaves its result.
#[derive(Default)]
struct Slot(Mutex<SlotState>);

#[derive(Default)]
struct SlotState {
    result: Option<Result<Outputs>>,
    ended: bool,
    waker: Option<Waker>,
}

impl Slot {
    fn finish(&self, result: Result<Outputs>) {
        let waker = {
            let mut state = self.0.lock();
            state.result = Some(result);
            state.ended = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

fn tensors(outputs: Outputs) -> Result<Element> {
    outputs.into_iter().map(Value::read).collect()
}
