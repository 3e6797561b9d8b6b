//! GeneratorDataset: elements that a function returns, one for each call, from a state that another function made.

use crate::attrs::{DATASET, opaque_kernel, spec};
use crate::function::{Call, Function, FunctionRun};
use crate::{
    Cardinality, Dataset, Element, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Inputs, Kernel, Op, Setup};
use status::{Code, Error, Result, unimplemented_op};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "GeneratorDataset(init_func_other_args: [Tinit_func_args], next_func_other_args: [Tnext_func_args], \
          finalize_func_other_args: [Tfinalize_func_args]) -> handle: variant; init_func: func; next_func: func; \
          finalize_func: func; Tinit_func_args: list(type) >= 0; Tnext_func_args: list(type) >= 0; \
          Tfinalize_func_args: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
          metadata: string = \"\"; stateful",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let generator = Generator {
        init: Function::of(setup, "init_func")?,
        next: Function::of(setup, "next_func")?,
        finalize: Function::of(setup, "finalize_func")?,
        spec: spec(setup)?,
    };
    let counts = (setup.types("Tinit_func_args")?.len(), setup.types("Tnext_func_args")?.len());
    opaque_kernel(move |_, inputs| generator.capture(inputs, counts))
}

struct Generator {
    init: Function,
    next: Function,
    finalize: Function,
    spec: Spec,
}

impl Generator {
    /// The same dataset whose functions have captured the inputs: those of `init`, of `next`, and the rest.
    fn capture(&self, inputs: &mut Inputs, (init, next): (usize, usize)) -> Result<Generator> {
        Ok(Generator {
            init: self.init.capture(inputs.tensors(0, init)?),
            next: self.next.capture(inputs.tensors(init, next)?),
            finalize: self.finalize.capture(inputs.tensors_from(init + next)?),
            spec: self.spec.clone(),
        })
    }
}

impl Dataset for Generator {
    fn kind(&self) -> &'static str {
        "Generator"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn functions(&self) -> Vec<&Function> {
        vec![&self.next]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(GeneratorIterator::new(&self, &place.pipeline)?))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct GeneratorIterator {
    init: FunctionRun,
    next: FunctionRun,
    finalize: FunctionRun,
    /// What `init` returned, until `finalize` has run.
    state: Option<Element>,
    step: Step,
}

/// The call that is in progress.
#[derive(Default)]
enum Step {
    #[default]
    Idle,
    Init(Call),
    Next(Call),
    Finalize(Call),
    /// `finalize` has run.
    Ended,
}

impl GeneratorIterator {
    fn new(generator: &Generator, pipeline: &Arc<Pipeline>) -> Result<GeneratorIterator> {
        Ok(GeneratorIterator {
            init: generator.init.in_pipeline(pipeline)?,
            next: generator.next.in_pipeline(pipeline)?,
            finalize: generator.finalize.in_pipeline(pipeline)?,
            state: None,
            step: Step::Idle,
        })
    }

    /// Begins the call of `init`, or of `next` if there is a state.
    fn begin(&mut self) -> Step {
        match &self.state {
            None => Step::Init(self.init.call(Element::new())),
            Some(state) => Step::Next(self.next.call(state.clone())),
        }
    }

    /// The result of the call in progress, which has ended then; an error of `finalize` leaves the iterator running.
    fn poll_call(&mut self, ctx: &PollContext<'_>) -> Poll<(Step, Result<Element>)> {
        let result = match &mut self.step {
            Step::Init(call) | Step::Next(call) | Step::Finalize(call) => ready!(call.poll(ctx)),
            Step::Idle | Step::Ended => Ok(Element::new()),
        };
        Poll::Ready((std::mem::take(&mut self.step), result))
    }
}

impl Iterate for GeneratorIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        loop {
            if let Step::Idle = self.step {
                self.step = self.begin();
            }
            match ready!(self.poll_call(ctx)) {
                (Step::Init(_), result) => self.state = Some(result?),
                (Step::Next(_), Err(error)) if error.code == Code::OutOfRange => {
                    let state = self.state.clone().unwrap_or_default();
                    self.step = Step::Finalize(self.finalize.call(state));
                }
                (Step::Next(_), result) => return Poll::Ready(result.map(Some)),
                (Step::Finalize(_), Err(error)) => return Poll::Ready(Err(error)),
                (_, _) => {
                    (self.step, self.state) = (Step::Ended, None);
                    return Poll::Ready(Ok(None));
                }
            }
        }
    }

    fn save(&self, _: &mut StateWriter) -> Result<()> {
        Err(no_checkpoints())
    }

    fn restore(&mut self, _: &Arc<StateReader>) -> Result<()> {
        Err(no_checkpoints())
    }
}

impl Drop for GeneratorIterator {
    fn drop(&mut self) {
        let state = self.state.take();
        match std::mem::take(&mut self.step) {
            Step::Finalize(call) => call.detach(),
            in_progress => {
                drop(in_progress); // cancels it
                if let Some(state) = state {
                    self.finalize.call_in_background(state).detach();
                }
            }
        }
    }
}

fn no_checkpoints() -> Error {
    unimplemented_op!("GeneratorDataset does not support checkpointing.")
}
