//! FilterDataset: the elements for which a function returns true.

use super::determinism::Determinism;
use super::map::in_function;
use super::parallel_filter::ParallelFilter;
use crate::attrs::{DATASET, dataset_kernel, input_dataset};
use crate::dataset::only;
use crate::function::{Call, Function, FunctionRun};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "FilterDataset(input_dataset: variant, other_arguments: [Targuments]) -> handle: variant; predicate: func; \
          Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
          metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let predicate = Function::of(setup, "predicate")?;
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        Ok(Filter { input, predicate: predicate.capture(inputs.tensors_from(1)?) })
    })
}

#[derive(Clone)]
pub(crate) struct Filter {
    pub input: DatasetRef,
    pub predicate: Function,
}

impl Filter {
    /// The same with calls for several elements at once.
    pub(crate) fn parallel(&self) -> DatasetRef {
        Arc::new(ParallelFilter {
            input: self.input.clone(),
            predicate: self.predicate.clone(),
            calls: None,
            determinism: Determinism::Kept,
        })
    }
}

impl Dataset for Filter {
    fn kind(&self) -> &'static str {
        "Filter"
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(Filter { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(FilterIterator {
            input: place.input(&self.input)?,
            predicate: self.predicate.in_pipeline(&place.pipeline)?,
            candidate: None,
            passed: 0,
            dropped: 0,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct FilterIterator {
    input: Input,
    predicate: FunctionRun,
    /// An element with the call that decides on it.
    candidate: Option<(Element, Call)>,
    passed: i64,
    dropped: i64,
    prefix: Arc<str>,
}

impl FilterIterator {
    /// The next element of the input, and whether it passes.
    fn poll_candidate(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<Option<(Element, bool)>>> {
        if self.candidate.is_none() {
            let Some(element) = ready!(self.input.poll_next(ctx))? else { return Poll::Ready(Ok(None)) };
            let call = self.predicate.call(element.clone());
            self.candidate = Some((element, call));
        }
        let Some((_, call)) = &mut self.candidate else { return Poll::Ready(Ok(None)) };
        let result = ready!(call.poll(ctx)).map_err(|error| in_function(error, "FilterDataset", &self.prefix));
        let element = self.candidate.take().map(|(element, _)| element).unwrap_or_default();
        let passes = truth(&result?).ok_or_else(|| invalid!("Filter predicate `f` must return a scalar bool."))?;
        Poll::Ready(Ok(Some((element, passes))))
    }
}

/// The only element of the only result of a predicate.
pub(crate) fn truth(result: &Element) -> Option<bool> {
    match result.as_slice() {
        [result] => match result.values::<bool>() {
            Ok(&[passes]) => Some(passes),
            _ => None,
        },
        _ => None,
    }
}

impl Iterate for FilterIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        loop {
            match ready!(self.poll_candidate(ctx))? {
                None => return Poll::Ready(Ok(None)),
                Some((element, true)) => {
                    self.passed += 1;
                    return Poll::Ready(Ok(Some(element)));
                }
                Some((_, false)) => self.dropped += 1,
            }
        }
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        writer.int(&self.prefix, "filtered_elements", self.passed);
        writer.int(&self.prefix, "dropped_elements", self.dropped);
        self.input.save(writer, &self.prefix, "input_impl_empty")
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.passed = reader.int(&self.prefix, "filtered_elements")?;
        self.dropped = reader.int(&self.prefix, "dropped_elements")?;
        self.input.restore(reader, &self.prefix, "input_impl_empty")
    }
}
