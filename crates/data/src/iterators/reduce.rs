//! ReduceDataset: applies a function to a state and each element of a dataset.

use super::compute::{Compute, compute};
use super::get_next::element_shapes;
use crate::attrs::{reading, spec};
use crate::rewrite::rewritten;
use crate::{Call, Element, Function, FunctionRun, Input, Pipeline, Place, PollContext, Spec, dataset_of};
use op::{Ctx, Grad, Home, Inputs, Kernel, Op, Outputs, PLAIN, Setup, Value, later};
use status::{Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "ReduceDataset(input_dataset: variant, initial_state: [Tstate], other_arguments: [Targuments]) -> \
          components: [output_types]; f: func; Tstate: list(type) >= 1; Targuments: list(type) >= 0; \
          output_types: list(type) >= 1; output_shapes: list(shape) >= 1; use_inter_op_parallelism: bool = true; \
          metadata: string = \"\"; stateful",
    shape: element_shapes,
    grad: Grad::Stop,
    kernel: |setup| reading(setup, kernel),
    facts: PLAIN,
}];

/// What the node says.
struct Reduction {
    home: Home,
    function: Function,
    states: usize,
    spec: Spec,
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, function, spec) = (Home::of(setup), Function::of(setup, "f")?, spec(setup)?);
    let reduction = Reduction { home, function, states: setup.types("Tstate")?.len(), spec };
    Ok(later(move |ctx, mut inputs, done| match reduction.start(ctx, &mut inputs) {
        Ok((pipeline, reducing)) => compute(ctx, pipeline, reducing, done),
        Err(error) => done(Err(error)),
    }))
}

impl Reduction {
    fn start(&self, ctx: &Ctx<'_>, inputs: &mut Inputs) -> Result<(Arc<Pipeline>, Reducing)> {
        let dataset = dataset_of(inputs.look(0)?)?;
        let state = inputs.tensors(1, self.states)?.into();
        let function = self.function.capture(inputs.tensors_from(1 + self.states)?);
        let pipeline = Pipeline::of(&self.home, ctx.env, &dataset)?;
        let last = rewritten(&dataset, &pipeline.options().rewrites);
        let place = Place::root(&pipeline, "ReduceIterator::Root", &last);
        let iterator = place.begin(&last)?;
        let function = function.in_pipeline(&pipeline)?;
        Ok((pipeline, Reducing { iterator, function, state, call: None, spec: self.spec.clone() }))
    }
}

struct Reducing {
    iterator: Input,
    function: FunctionRun,
    state: Element,
    /// The call with the last element.
    call: Option<Call>,
    spec: Spec,
}

impl Compute for Reducing {
    fn poll(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<Outputs>> {
        loop {
            if let Some(call) = &mut self.call {
                let result = ready!(call.poll(ctx))?;
                self.call = None;
                self.replace_state(result)?;
            }
            let Some(element) = ready!(self.iterator.poll_next(ctx))? else { break };
            let arguments = self.state.iter().cloned().chain(element).collect();
            self.call = Some(self.function.call(arguments));
        }
        self.spec.check_element(&self.state)?;
        Poll::Ready(Ok(std::mem::take(&mut self.state).into_iter().map(Value::Tensor).collect()))
    }
}

impl Reducing {
    fn replace_state(&mut self, result: Element) -> Result<()> {
        let (expected, found) = (self.state.len(), result.len());
        if expected != found {
            return Err(invalid!(
                "The number of components of the initial state and the reduce function output does not match. \
                 (initial_state={expected}, output={found})."
            ));
        }
        self.state = result;
        Ok(())
    }
}
