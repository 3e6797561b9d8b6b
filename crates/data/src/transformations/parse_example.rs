//! ParseExampleDataset in both versions: parses batches of serialized examples, several at once.

use super::determinism::Determinism;
use super::parallel_calls::{ParallelCalls, parallel_calls};
use super::saved::{read_input, read_list, write_input, write_list};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use crate::dataset::only;
use crate::function::Call;
use crate::iterate::settle_all;
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter, full_name,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use ops::parsing::{ElementParser, Features};
use status::{Code, Error, Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};
use tensor::Bytes;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ParseExampleDataset(input_dataset: variant, num_parallel_calls: int64, dense_defaults: [Tdense]) -> \
              handle: variant; sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; \
              sparse_types: list({float, int64, string}) >= 0; Tdense: list({float, int64, string}) >= 0; \
              dense_shapes: list(shape) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              sloppy: bool = false; ragged_keys: list(string) >= 0 = []; \
              ragged_value_types: list({float, int64, string}) >= 0 = []; \
              ragged_split_types: list({int32, int64}) >= 0 = []",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, "ParseExample", Determinism::of_sloppy(setup)?, true),
        facts: DATASET,
    },
    Op {
        def: "ExperimentalParseExampleDataset(input_dataset: variant, num_parallel_calls: int64, \
              dense_defaults: [Tdense]) -> handle: variant; sparse_keys: list(string) >= 0; \
              dense_keys: list(string) >= 0; sparse_types: list({float, int64, string}) >= 0; \
              Tdense: list({float, int64, string}) >= 0; dense_shapes: list(shape) >= 0; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; sloppy: bool = false",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, "ParseExample", Determinism::of_sloppy(setup)?, false),
        facts: DATASET,
    },
    Op {
        def: "ParseExampleDatasetV2(input_dataset: variant, num_parallel_calls: int64, dense_defaults: [Tdense]) -> \
              handle: variant; sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; \
              sparse_types: list({float, int64, string}) >= 0; Tdense: list({float, int64, string}) >= 0; \
              dense_shapes: list(shape) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              deterministic: string = \"default\"; ragged_keys: list(string) >= 0 = []; \
              ragged_value_types: list({float, int64, string}) >= 0 = []; \
              ragged_split_types: list({int32, int64}) >= 0 = []",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, "ParseExampleV2", Determinism::of(setup)?, true),
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>, kind: &'static str, determinism: Determinism, has_ragged: bool) -> Result<Kernel> {
    let (spec, features) = (spec(setup)?, Features::of(setup, has_ragged)?);
    dataset_kernel(setup, move |_, inputs| {
        let calls = parallel_calls(scalar(inputs, 1, "num_parallel_calls")?)?;
        let input = input_dataset(inputs, 0)?;
        let parser = Arc::new(features.with_defaults(&inputs.tensors_from(2)?)?);
        Ok(ParseExample { kind, input, parser, calls, determinism, spec: Arc::new(spec.clone()) })
    })
}

#[derive(Clone)]
struct ParseExample {
    kind: &'static str,
    input: DatasetRef,
    parser: Arc<ElementParser>,
    calls: Option<usize>,
    determinism: Determinism,
    spec: Arc<Spec>,
}

impl Dataset for ParseExample {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(ParseExample { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let keeps_order = self.determinism.keeps_order(&place.pipeline);
        Ok(Box::new(ParseExampleIterator {
            input: place.input(&self.input)?.kept(),
            calls: ParallelCalls::new(&place.pipeline, self.calls, keeps_order),
            dataset: self,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}

struct ParseExampleIterator {
    input: Input,
    calls: ParallelCalls<()>,
    dataset: Arc<ParseExample>,
    prefix: Arc<str>,
}

impl ParseExampleIterator {
    /// Begins to parse the elements that the input has now.
    fn begin_calls(&mut self, ctx: &mut PollContext<'_>) {
        while self.calls.has_room() && !self.input.has_ended() {
            if self.poll_begin(ctx) != Poll::Ready(true) {
                return;
            }
        }
    }

    /// Begins to parse the next element; false if there is none.
    fn poll_begin(&mut self, ctx: &mut PollContext<'_>) -> Poll<bool> {
        Poll::Ready(match ready!(self.input.poll_next(ctx)) {
            Ok(Some(element)) => {
                self.calls.push((), self.parse(ctx.pipeline, element));
                true
            }
            Ok(None) => false,
            Err(error) => {
                self.calls.push_ended((), Err(error));
                false
            }
        })
    }

    fn parse(&self, pipeline: &Arc<Pipeline>, element: Element) -> Call {
        let (parser, spec, pool) = (self.dataset.parser.clone(), self.dataset.spec.clone(), pipeline.pool().clone());
        Call::in_background(pipeline, move || {
            let parts = element.iter().map(tensor::Tensor::strings).collect::<Result<Vec<&[Bytes]>>>()?;
            let parsed = match parts[..] {
                [serialized] => parser.parse(&pool, serialized)?,
                _ => parser.parse(&pool, &parts.concat())?,
            };
            checked(parsed.into(), &spec)
        })
    }
}

/// The parsed features; an error if they differ from the promised types and shapes.
fn checked(parsed: Element, spec: &Spec) -> Result<Element> {
    if parsed.len() != spec.types.len() || spec.shapes.len() != spec.types.len() {
        return Err(invalid!("Got {} features, but output_types has {} types", parsed.len(), spec.types.len()));
    }
    for (index, (found, (dtype, shape))) in parsed.iter().zip(spec.types.iter().zip(&spec.shapes)).enumerate() {
        if found.dtype() != *dtype {
            let found = found.dtype();
            return Err(invalid!(
                "Got wrong type for FastParseExample return value {index} (expected {dtype}, got {found})."
            ));
        }
        if !shape.accepts(found.shape()) {
            let found = found.shape();
            return Err(invalid!(
                "Got wrong shape for FastParseExample return value {index} (expected {shape}, got {found})."
            ));
        }
    }
    Ok(parsed)
}

fn unchanged(error: Error) -> Error {
    error
}

impl Iterate for ParseExampleIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        self.begin_calls(ctx);
        if self.calls.is_empty() {
            return if self.input.has_ended() { Poll::Ready(Ok(None)) } else { Poll::Pending };
        }
        let Some((_, result)) = ready!(self.calls.poll_next(ctx, &unchanged)) else { return Poll::Ready(Ok(None)) };
        Poll::Ready(match result {
            Ok(element) => Ok(Some(element)),
            Err(error) if error.code == Code::OutOfRange => {
                Err(invalid!("Function invocation produced OutOfRangeError: {}", error.message))
            }
            Err(error) => Err(error),
        })
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
        let prefix = &*self.prefix;
        write_input(writer, prefix, &self.input)?;
        writer.int(prefix, &full_name(prefix, "invocation_results.size"), self.calls.len() as i64);
        for (index, (_, result)) in self.calls.results().enumerate() {
            let key = |name: &str| full_name(prefix, &format!("invocation_results[{index}]{name}"));
            writer.status(prefix, &key(".code"), &key(".error_message"), result);
            let element = result.as_deref().unwrap_or_default();
            writer.int(prefix, &key(".size"), element.len() as i64);
            write_list(writer, prefix, &key(""), element);
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = &*self.prefix;
        read_input(reader, prefix, &mut self.input)?;
        for index in 0..reader.count(prefix, "invocation_results.size")? {
            let key = |name: &str| format!("invocation_results[{index}]{name}");
            if reader.contains(prefix, &key(".end_of_input")) {
                continue; // TensorFlow's calls at the end of the input
            }
            let status = reader.status(prefix, &key(".code"), &key(".error_message"))?;
            let element = read_list(reader, prefix, &key(""), reader.count(prefix, &key(".size"))?)?;
            self.calls.push_ended((), status.map(|()| element));
        }
        Ok(())
    }
}
