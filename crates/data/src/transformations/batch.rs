//! BatchDataset and BatchDatasetV2: joins consecutive elements.

use super::determinism::Determinism;
use super::parallel_batch::ParallelBatch;
use super::random_access::{check_index, joined};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use crate::budget::cost;
use crate::dataset::{PendingElement, only, op_name};
use crate::iterate::IndexMapper;
use crate::memory::{Held, check_fits, least_bytes};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, failed_precondition, invalid, out_of_range};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "BatchDataset(input_dataset: variant, batch_size: int64) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "BatchDatasetV2(input_dataset: variant, batch_size: int64, drop_remainder: bool) -> handle: variant; \
              parallel_copy: bool = false; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

/// The kind that can drop the last elements.
const SECOND_KIND: &str = "BatchV2";

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    let chooses_remainder = setup.input_types().len() > 2;
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let size = batch_size(scalar(inputs, 1, "batch_size")?)?;
        let drops_remainder = chooses_remainder && scalar(inputs, 2, "drop_remainder")?;
        let kind = if chooses_remainder { SECOND_KIND } else { "Batch" };
        Ok(Batch { input, size, drops_remainder, spec: spec.clone(), kind })
    })
}

/// A batch size from an input.
pub(crate) fn batch_size(size: i64) -> Result<usize> {
    usize::try_from(size).ok().filter(|&size| size > 0).ok_or_else(|| invalid!("Batch size must be greater than zero."))
}

#[derive(Clone)]
pub(crate) struct Batch {
    pub input: DatasetRef,
    pub size: usize,
    pub drops_remainder: bool,
    pub spec: Spec,
    pub kind: &'static str,
}

impl Batch {
    /// The same with several batches at once; none for the first version of the op.
    pub(crate) fn parallel(&self) -> Option<DatasetRef> {
        (self.kind == SECOND_KIND).then(|| -> DatasetRef {
            Arc::new(ParallelBatch {
                input: self.input.clone(),
                size: self.size,
                calls: None,
                drops_remainder: self.drops_remainder,
                determinism: Determinism::Default,
                spec: self.spec.clone(),
            })
        })
    }
}

impl Dataset for Batch {
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
        only(inputs).map(|input| -> DatasetRef { Arc::new(Batch { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        check_fits(self.kind, self.size as u64, least_bytes(self.input.spec()), &self.input)?;
        Ok(Box::new(BatchIterator {
            held: Held::new(self.kind, self.size as u64),
            input: place.input(&self.input)?,
            size: self.size,
            drops_remainder: self.drops_remainder,
            elements: Vec::new(),
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        let size = self.size as u64;
        self.input.cardinality().map(|count| if self.drops_remainder { count / size } else { count.div_ceil(size) })
    }

    fn check_random_indexing(&self, inputs: Vec<Result<()>>) -> Result<()> {
        if !self.drops_remainder {
            return Err(failed_precondition!(
                "{} does not support global shuffling with `drop_remainder=False`.",
                op_name(self.kind)
            ));
        }
        inputs.into_iter().collect()
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        check_index(self, "Batch", index)?;
        let first = index.saturating_mul(self.size);
        let last = match self.input.cardinality() {
            Cardinality::Finite(count) => {
                first.saturating_add(self.size).min(usize::try_from(count).unwrap_or(usize::MAX))
            }
            _ => first,
        };
        Ok(joined(pipeline, &self.input, first..last))
    }

    fn batch_size(&self) -> Option<i64> {
        i64::try_from(self.size).ok()
    }
}

struct BatchIterator {
    input: Input,
    size: usize,
    drops_remainder: bool,
    /// The elements of the next batch that have arrived.
    elements: Vec<Element>,
    held: Held,
    prefix: Arc<str>,
}

impl BatchIterator {
    fn add(&mut self, element: Element) -> Result<()> {
        let held = self.held.add(cost(&element));
        self.elements.push(element);
        if held.is_err() {
            self.elements = Vec::new();
            self.input.end();
        }
        held
    }
}

/// Maps the positions of elements as those of their batches.
fn mapper(map: IndexMapper, size: usize) -> IndexMapper {
    Arc::new(move |position| {
        let first = map(position / size)?.checked_mul(size);
        first
            .and_then(|first| first.checked_add(position % size))
            .ok_or_else(|| out_of_range!("The batch has no element at position {}", position % size))
    })
}

impl Iterate for BatchIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        let index_mapper = ctx.index_mapper.clone().map(|map| mapper(map, self.size));
        let mut inner = PollContext { index_mapper, ..PollContext::new(ctx.pipeline, ctx.waker) };
        while self.elements.len() < self.size {
            match ready!(self.input.poll_next(&mut inner)) {
                Ok(Some(element)) => self.add(element)?,
                Ok(None) => break,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let elements = std::mem::take(&mut self.elements);
        self.held.clear();
        if elements.is_empty() || self.drops_remainder && elements.len() < self.size {
            self.input.end();
            return Poll::Ready(Ok(None));
        }
        Poll::Ready(crate::transformations::stack::stacked(elements).map(Some))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        self.input.save(writer, &self.prefix, "input_impl_empty")
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.input.restore(reader, &self.prefix, "input_impl_empty")
    }
}
