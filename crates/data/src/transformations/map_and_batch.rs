//! MapAndBatchDataset: applies a function to several elements at once, and joins the results.

use super::batch_results::{Partial, stacked_by_count};
use super::parallel_calls::{ParallelCalls, parallel_calls};
use super::saved::{read_input, write_input};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use crate::budget::cost_of;
use crate::dataset::only;
use crate::function::{Function, FunctionRun};
use crate::input::at_element;
use crate::iterate::settle_all;
use crate::memory::{Held, LEAST_BYTES, check_fits};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Code, Error, Result, invalid};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MapAndBatchDataset(input_dataset: variant, other_arguments: [Targuments], batch_size: int64, \
              num_parallel_calls: int64, drop_remainder: bool) -> handle: variant; f: func; \
              Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              preserve_cardinality: bool = false; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalMapAndBatchDataset(input_dataset: variant, other_arguments: [Targuments], batch_size: int64, \
              num_parallel_calls: int64, drop_remainder: bool) -> handle: variant; f: func; \
              Targuments: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              preserve_cardinality: bool = false",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (spec, function) = (spec(setup)?, Function::of(setup, "f")?);
    let preserves_cardinality = setup.bool("preserve_cardinality")?;
    dataset_kernel(setup, move |_, inputs| {
        let first = inputs.len() - 3;
        let size = usize::try_from(scalar::<i64>(inputs, first, "batch_size")?).ok().filter(|&size| size > 0);
        let size = size.ok_or_else(|| invalid!("batch_size must be greater than zero."))?;
        let calls = parallel_calls(scalar(inputs, first + 1, "num_parallel_calls")?)?;
        let drops_remainder = scalar(inputs, first + 2, "drop_remainder")?;
        let input = input_dataset(inputs, 0)?;
        let function = function.capture(inputs.tensors(1, first - 1)?);
        Ok(MapAndBatch { input, function, size, calls, drops_remainder, preserves_cardinality, spec: spec.clone() })
    })
}

#[derive(Clone)]
pub(crate) struct MapAndBatch {
    pub input: DatasetRef,
    pub function: Function,
    pub size: usize,
    pub calls: Option<usize>,
    pub drops_remainder: bool,
    pub preserves_cardinality: bool,
    pub spec: Spec,
}

impl Dataset for MapAndBatch {
    fn kind(&self) -> &'static str {
        "MapAndBatch"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(MapAndBatch { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        check_fits("MapAndBatch", self.size as u64, LEAST_BYTES, &self.input)?;
        Ok(Box::new(MapAndBatchIterator {
            held: Held::new("MapAndBatch", self.size as u64),
            input: place.input(&self.input)?.kept(),
            function: self.function.in_pipeline(&place.pipeline)?,
            calls: ParallelCalls::new(&place.pipeline, self.calls, true),
            read: 0,
            current: Partial::default(),
            restored: VecDeque::new(),
            dataset: self,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        if !self.preserves_cardinality {
            return Cardinality::Unknown;
        }
        let size = self.size as u64;
        self.input.cardinality().map(|count| if self.drops_remainder { count / size } else { count.div_ceil(size) })
    }
}

struct MapAndBatchIterator {
    input: Input,
    function: FunctionRun,
    /// The calls, with the positions of their elements.
    calls: ParallelCalls<u64>,
    /// The number of elements that were read since it began or was restored.
    read: u64,
    current: Partial,
    held: Held,
    /// Batches after the current one, of a saved state.
    restored: VecDeque<Partial>,
    dataset: Arc<MapAndBatch>,
    prefix: Arc<str>,
}

fn unchanged(error: Error) -> Error {
    error
}

impl MapAndBatchIterator {
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
        let next = ready!(self.input.poll_next(ctx));
        let begun = matches!(next, Ok(Some(_)));
        match next {
            Ok(None) => return Poll::Ready(false),
            Ok(Some(element)) => self.calls.push(self.read, self.function.call_soon(element)),
            Err(error) => self.calls.push_ended(self.read, Err(error)),
        }
        self.read += 1;
        Poll::Ready(begun)
    }

    /// True if the next call may be made on this thread, one at a time: others would not make a short function faster.
    fn may_call_here(&self) -> bool {
        self.calls.is_empty() && !self.input.has_ended() && self.function.is_short()
    }

    /// Makes one call; true if it ended at once.
    fn poll_here(&mut self, ctx: &mut PollContext<'_>) -> Poll<bool> {
        let position = self.read;
        let result = match ready!(self.input.poll_next(ctx)) {
            Ok(None) => return Poll::Ready(false),
            Ok(Some(element)) => {
                let mut call = self.function.call_soon(element);
                self.read += 1;
                match call.poll(ctx) {
                    Poll::Ready(result) => result,
                    Poll::Pending => {
                        self.calls.push(position, call);
                        return Poll::Ready(false);
                    }
                }
            }
            Err(error) => {
                self.read += 1;
                Err(error)
            }
        };
        self.add_at(position, result);
        Poll::Ready(true)
    }

    /// Waits until all elements of the current batch are there.
    fn poll_batch(&mut self, ctx: &mut PollContext<'_>) -> Poll<()> {
        while self.current.seen < self.dataset.size {
            if !self.restored.is_empty() {
                return Poll::Ready(()); // only the last one may grow
            }
            if self.may_call_here() {
                if ready!(self.poll_here(ctx)) {
                    continue;
                }
            } else {
                self.begin_calls(ctx);
            }
            if self.calls.is_empty() {
                return if self.input.has_ended() { Poll::Ready(()) } else { Poll::Pending };
            }
            if let Some((position, result)) = ready!(self.calls.poll_next(ctx, &unchanged)) {
                self.add_at(position, result);
            }
        }
        Poll::Ready(())
    }

    fn add_at(&mut self, position: u64, result: Result<Element>) {
        let result = result.map_err(|error| at_element(error, position, &self.prefix));
        let held = self.held.add(cost_of(&result));
        self.current.add(result);
        if let Err(error) = held {
            self.current = Partial { elements: Vec::new(), seen: self.dataset.size, failed: Some(error) };
            self.input.end();
        }
    }

    fn finish(&self, batch: Partial) -> Result<Option<Element>> {
        match batch.failed {
            Some(error) if error.code != Code::OutOfRange => return Err(error),
            Some(error) if self.dataset.preserves_cardinality => {
                return Err(invalid!("Function invocation produced OutOfRangeError: {}", error.message));
            }
            _ => {}
        }
        let count = batch.elements.len();
        if count == 0 || count < self.dataset.size && self.dataset.drops_remainder {
            return Ok(None);
        }
        stacked_by_count(batch.elements).map(Some)
    }
}

impl Iterate for MapAndBatchIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        ready!(self.poll_batch(ctx));
        let next = self.restored.pop_front().unwrap_or_default();
        let batch = std::mem::replace(&mut self.current, next);
        self.held.clear();
        if !self.function.is_short() {
            self.begin_calls(ctx);
        }
        Poll::Ready(self.finish(batch))
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
        let size = self.dataset.size;
        let mut batches = vec![self.current.clone()];
        batches.extend(self.restored.iter().cloned());
        for (_, result) in self.calls.results() {
            if batches.last().is_none_or(|last| last.seen >= size) {
                batches.push(Partial::default());
            }
            if let Some(last) = batches.last_mut() {
                last.add(result.clone());
            }
        }
        batches.retain(|batch| batch.seen > 0);
        let seen: usize = batches.iter().map(|batch| batch.seen).sum();
        writer.int(&self.prefix, "call_counter", seen as i64);
        writer.int(&self.prefix, "batch_results_size", batches.len() as i64);
        for (index, batch) in batches.into_iter().enumerate() {
            batch.save(writer, &self.prefix, index, size);
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        read_input(reader, &self.prefix, &mut self.input)?;
        for index in 0..reader.count(&self.prefix, "batch_results_size")? {
            self.restored.push_back(Partial::restored(reader, &self.prefix, index, self.dataset.size)?);
        }
        self.current = self.restored.pop_front().unwrap_or_default();
        Ok(())
    }
}
