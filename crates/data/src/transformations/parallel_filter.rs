//! ParallelFilterDataset: decides for several elements at once which are kept.

use super::determinism::Determinism;
use super::filter::truth;
use super::parallel_calls::{ParallelCalls, parallel_calls};
use super::saved::{read_input, write_input};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar};
use crate::dataset::only;
use crate::function::{Function, FunctionRun};
use crate::iterate::settle_all;
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Code, Error, Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "ParallelFilterDataset(input_dataset: variant, other_arguments: [Targuments], num_parallel_calls: int64) -> \
          handle: variant; predicate: func; deterministic: string = \"default\"; Targuments: list(type) >= 0; \
          output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (predicate, determinism) = (Function::of(setup, "predicate")?, Determinism::of(setup)?);
    dataset_kernel(setup, move |_, inputs| {
        let last = inputs.len() - 1;
        let calls = parallel_calls(scalar(inputs, last, "num_parallel_calls")?)?;
        let input = input_dataset(inputs, 0)?;
        let predicate = predicate.capture(inputs.tensors(1, last - 1)?);
        Ok(ParallelFilter { input, predicate, calls, determinism })
    })
}

#[derive(Clone)]
pub(crate) struct ParallelFilter {
    pub input: DatasetRef,
    pub predicate: Function,
    pub calls: Option<usize>,
    pub determinism: Determinism,
}

impl Dataset for ParallelFilter {
    fn kind(&self) -> &'static str {
        "ParallelFilter"
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(ParallelFilter { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let keeps_order = self.determinism.keeps_order(&place.pipeline);
        Ok(Box::new(ParallelFilterIterator {
            input: place.input(&self.input)?.kept(),
            predicate: self.predicate.in_pipeline(&place.pipeline)?,
            calls: ParallelCalls::new(&place.pipeline, self.calls, keeps_order),
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct ParallelFilterIterator {
    input: Input,
    predicate: FunctionRun,
    /// The elements with the calls that decide on them.
    calls: ParallelCalls<Element>,
    prefix: Arc<str>,
}

impl ParallelFilterIterator {
    /// Begins calls for the elements that the input has now.
    fn begin_calls(&mut self, ctx: &mut PollContext<'_>) {
        while self.calls.has_room() && !self.input.has_ended() {
            if self.poll_begin(ctx) != Poll::Ready(true) {
                return;
            }
        }
    }

    /// Begins the call for the next element; false if there is none.
    fn poll_begin(&mut self, ctx: &mut PollContext<'_>) -> Poll<bool> {
        Poll::Ready(match ready!(self.input.poll_next(ctx)) {
            Ok(Some(element)) => {
                let call = self.predicate.call_soon(element.clone());
                self.calls.push(element, call);
                true
            }
            Ok(None) => false,
            Err(error) => {
                self.calls.push_ended(Element::new(), Err(error));
                false
            }
        })
    }
}

/// The errors of predicates are returned as they are.
fn unchanged(error: Error) -> Error {
    error
}

impl Iterate for ParallelFilterIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        loop {
            self.begin_calls(ctx);
            if self.calls.is_empty() {
                return if self.input.has_ended() { Poll::Ready(Ok(None)) } else { Poll::Pending };
            }
            let Some((element, result)) = ready!(self.calls.poll_next(ctx, &unchanged)) else { continue };
            match result {
                Ok(result) => match truth(&result) {
                    Some(true) => return Poll::Ready(Ok(Some(element))),
                    Some(false) => {}
                    None => {
                        let text = "Filter predicate `predicate` must return a scalar bool.";
                        return Poll::Ready(Err(invalid!("{text}")));
                    }
                },
                Err(error) if error.code == Code::OutOfRange => {
                    let message = error.message;
                    return Poll::Ready(Err(invalid!("Function invocation produced OutOfRangeError: {message}")));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        if self.input.is_reading() {
            ready!(self.poll_begin(ctx));
        }
        ready!(self.calls.poll_all(ctx, &unchanged));
        settle_all(self.input.as_list(), ctx)
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        write_input(writer, &self.prefix, &self.input)?;
        writer.int(&format!("{}::invocation_results", self.prefix), "size", self.calls.len() as i64);
        for (index, (element, result)) in self.calls.results().enumerate() {
            let prefix = result_prefix(&self.prefix, index);
            writer.status(&prefix, "code", "error_message", result);
            write_components(writer, &format!("{prefix}::return_values"), element);
            let predicate = result.as_deref().unwrap_or_default();
            write_components(writer, &format!("{prefix}::predicate_values"), predicate);
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        read_input(reader, &self.prefix, &mut self.input)?;
        for index in 0..reader.count(&format!("{}::invocation_results", self.prefix), "size")? {
            let prefix = result_prefix(&self.prefix, index);
            if reader.contains(&prefix, "end_of_input") {
                continue; // TensorFlow's calls at the end of the input
            }
            let status = reader.status(&prefix, "code", "error_message")?;
            let element = read_components(reader, &format!("{prefix}::return_values"))?;
            let predicate = read_components(reader, &format!("{prefix}::predicate_values"))?;
            self.calls.push_ended(element, status.map(|()| predicate));
        }
        Ok(())
    }
}

fn result_prefix(prefix: &str, index: usize) -> String {
    format!("{prefix}::invocation_results::{index}")
}

fn write_components(writer: &mut StateWriter, prefix: &str, components: &[tensor::Tensor]) {
    writer.int(prefix, "size", components.len() as i64);
    super::saved::write_list(writer, prefix, "component", components);
}

fn read_components(reader: &StateReader, prefix: &str) -> Result<Element> {
    super::saved::read_list(reader, prefix, "component", reader.count(prefix, "size")?)
}
