//! TakeWhileDataset: the elements before the first for which a function returns false.

use super::filter::truth;
use crate::attrs::{DATASET, dataset_kernel, input_dataset};
use crate::function::{Call, Function, FunctionRun};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader,
    StateWriter, full_name,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "TakeWhileDataset(input_dataset: variant, other_arguments: [Targuments]) -> handle: variant; \
              predicate: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalTakeWhileDataset(input_dataset: variant, other_arguments: [Targuments]) -> handle: variant; \
              predicate: func; Targuments: list(type) >= 0; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let predicate = Function::of(setup, "predicate")?;
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        Ok(TakeWhile { input, predicate: predicate.capture(inputs.tensors_from(1)?) })
    })
}

struct TakeWhile {
    input: DatasetRef,
    predicate: Function,
}

impl Dataset for TakeWhile {
    fn kind(&self) -> &'static str {
        "TakeWhile"
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(TakeWhileIterator {
            input: place.input(&self.input)?,
            predicate: self.predicate.in_pipeline(&place.pipeline)?,
            candidate: None,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct TakeWhileIterator {
    input: Input,
    predicate: FunctionRun,
    /// An element with the call that decides on it.
    candidate: Option<(Element, Call)>,
    prefix: Arc<str>,
}

impl Iterate for TakeWhileIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.candidate.is_none() {
            let Some(element) = ready!(self.input.poll_next(ctx))? else { return Poll::Ready(Ok(None)) };
            let call = self.predicate.call(element.clone());
            self.candidate = Some((element, call));
        }
        let Some((_, call)) = &mut self.candidate else { return Poll::Ready(Ok(None)) };
        let result = ready!(call.poll(ctx));
        let element = self.candidate.take().map(|(element, _)| element);
        let goes_on = truth(&result?).ok_or_else(|| invalid!("`predicate` must returns a scalar bool tensor."))?;
        if !goes_on {
            self.input.end();
        }
        Poll::Ready(Ok(element.filter(|_| goes_on)))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        self.input.save(writer, &self.prefix, &full_name(&self.prefix, "input_impl_empty"))
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.input.restore(reader, &self.prefix, "input_impl_empty")
    }
}
