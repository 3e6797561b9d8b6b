//! ParallelBatchDataset: joins consecutive elements, several batches at once.

use super::batch::batch_size;
use super::batch_results::{restored_batch, save_batch};
use super::parallel_calls::{ParallelCalls, parallel_calls};
use super::saved::{read_input, write_input};
use super::stack::stacked;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use crate::budget::cost;
use crate::dataset::only;
use crate::function::Call;
use crate::iterate::settle_all;
use crate::memory::{Held, check_fits, least_bytes};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Error, Result};
use std::sync::Arc;
use std::task::{Poll, ready};

use super::determinism::Determinism;

pub(crate) const OPS: &[Op] = &[Op {
    def: "ParallelBatchDataset(input_dataset: variant, batch_size: int64, num_parallel_calls: int64, \
          drop_remainder: bool) -> handle: variant; parallel_copy: bool = false; output_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1; deterministic: string = \"default\"; metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (spec, determinism) = (spec(setup)?, Determinism::of(setup)?);
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let size = batch_size(scalar(inputs, 1, "batch_size")?)?;
        let calls = parallel_calls(scalar(inputs, 2, "num_parallel_calls")?)?;
        let drops_remainder = scalar(inputs, 3, "drop_remainder")?;
        Ok(ParallelBatch { input, size, calls, drops_remainder, determinism, spec: spec.clone() })
    })
}

#[derive(Clone)]
pub(crate) struct ParallelBatch {
    pub input: DatasetRef,
    pub size: usize,
    pub calls: Option<usize>,
    pub drops_remainder: bool,
    pub determinism: Determinism,
    pub spec: Spec,
}

impl Dataset for ParallelBatch {
    fn kind(&self) -> &'static str {
        "ParallelBatch"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(ParallelBatch { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let keeps_order = self.determinism.keeps_order(&place.pipeline);
        check_fits("ParallelBatch", self.size as u64, least_bytes(self.input.spec()), &self.input)?;
        Ok(Box::new(ParallelBatchIterator {
            held: Held::new("ParallelBatch", self.size as u64),
            input: place.input(&self.input)?.kept(),
            elements: Vec::new(),
            calls: ParallelCalls::new(&place.pipeline, self.calls, keeps_order),
            dataset: self,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        let size = self.size as u64;
        self.input.cardinality().map(|count| if self.drops_remainder { count / size } else { count.div_ceil(size) })
    }
}

struct ParallelBatchIterator {
    input: Input,
    /// The elements of the next batch that have arrived.
    elements: Vec<Element>,
    held: Held,
    /// The batches that are being joined, with the numbers of their elements.
    calls: ParallelCalls<usize>,
    dataset: Arc<ParallelBatch>,
    prefix: Arc<str>,
}

fn unchanged(error: Error) -> Error {
    error
}

impl ParallelBatchIterator {
    /// Adds an element to the batch; false if there is none.
    fn add(&mut self, next: Option<Element>) -> Result<bool> {
        let Some(element) = next else { return Ok(false) };
        let held = self.held.add(cost(&element));
        self.elements.push(element);
        if held.is_err() {
            self.input.end();
        }
        held.map(|()| true)
    }

    /// Collects the elements of one batch and begins to join them.
    fn poll_collect(&mut self, ctx: &mut PollContext<'_>) -> Poll<()> {
        while self.elements.len() < self.dataset.size {
            match ready!(self.input.poll_next(ctx)).and_then(|next| self.add(next)) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    let count = std::mem::take(&mut self.elements).len();
                    self.held.clear();
                    self.calls.push_ended(count, Err(error));
                    return Poll::Ready(());
                }
            }
        }
        let elements = std::mem::take(&mut self.elements);
        self.held.clear();
        let count = elements.len();
        if count == self.dataset.size || count > 0 && !self.dataset.drops_remainder {
            self.calls.push(count, Call::in_background(ctx.pipeline, move || stacked(elements)));
        }
        Poll::Ready(())
    }
}

impl Iterate for ParallelBatchIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        while self.calls.has_room() && !self.input.has_ended() {
            if self.poll_collect(ctx).is_pending() {
                break;
            }
        }
        if self.calls.is_empty() {
            return if self.input.has_ended() { Poll::Ready(Ok(None)) } else { Poll::Pending };
        }
        let next = ready!(self.calls.poll_next(ctx, &unchanged));
        Poll::Ready(next.map(|(_, batch)| batch).transpose())
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        if !self.elements.is_empty() || self.input.is_reading() {
            ready!(self.poll_collect(ctx)); // the form of the state has only whole batches
        }
        ready!(self.calls.poll_all(ctx, &unchanged));
        settle_all(self.input.as_list(), ctx)
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        write_input(writer, &self.prefix, &self.input)?;
        writer.int(&self.prefix, "batch_results_size", self.calls.len() as i64);
        for (index, (&count, batch)) in self.calls.results().enumerate() {
            writer.string(&self.prefix, &format!("batch_results_{index}_call_finished"), "");
            save_batch(writer, &self.prefix, index, count, batch.clone());
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        read_input(reader, &self.prefix, &mut self.input)?;
        for index in 0..reader.count(&self.prefix, "batch_results_size")? {
            let count = reader.count(&self.prefix, &format!("batch_results_{index}_num_elements"))?;
            let (batch, status) = restored_batch(reader, &self.prefix, index)?;
            let is_returned = count == self.dataset.size || count > 0 && !self.dataset.drops_remainder;
            if status.is_err() || is_returned {
                self.calls.push_ended(count, status.map(|()| batch));
            }
        }
        Ok(())
    }
}
