//! TakeDataset: the first elements.

use super::empty::Empty;
use super::random_access::check_index;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar};
use crate::dataset::{PendingElement, only};
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::Result;
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "TakeDataset(input_dataset: variant, count: int64) -> handle: variant; output_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1; metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_kernel(setup, |_, inputs| Ok(Take { input: input_dataset(inputs, 0)?, count: scalar(inputs, 1, "count")? }))
}

/// The first elements of a dataset.
pub(crate) fn take(input: DatasetRef, count: i64) -> DatasetRef {
    Arc::new(Take { input, count })
}

#[derive(Clone)]
pub(crate) struct Take {
    input: DatasetRef,
    /// Negative: all elements.
    count: i64,
}

impl Take {
    /// True if it has the elements of its input.
    pub(crate) fn takes_all(&self) -> bool {
        self.count < 0
    }

    fn limit(&self) -> Option<u64> {
        u64::try_from(self.count).ok()
    }
}

impl Dataset for Take {
    fn kind(&self) -> &'static str {
        if self.count == 0 { "EmptyTake" } else { "FiniteTake" }
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(Take { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        if self.count == 0 {
            return Ok(Box::new(Empty));
        }
        let (input, limit) = (place.input(&self.input)?, self.limit());
        Ok(Box::new(TakeIterator { input, limit, taken: 0, prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        match (self.input.cardinality(), self.limit()) {
            (Cardinality::Infinite, Some(limit)) => Cardinality::Finite(limit),
            (known, Some(limit)) => known.map(|count| count.min(limit)),
            (known, None) => known,
        }
    }

    /// As in TensorFlow, whatever the input is.
    fn check_random_indexing(&self, _: Vec<Result<()>>) -> Result<()> {
        Ok(())
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        check_index(self, "Take", index)?;
        self.input.element_at(pipeline, index)
    }
}

struct TakeIterator {
    input: Input,
    limit: Option<u64>,
    taken: u64,
    prefix: Arc<str>,
}

impl Iterate for TakeIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.limit.is_some_and(|limit| self.taken >= limit) {
            self.input.end();
        }
        let next = ready!(self.input.poll_next(ctx));
        self.taken += u64::from(matches!(next, Ok(Some(_))));
        Poll::Ready(next)
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        writer.int(&self.prefix, "i", self.taken as i64);
        self.input.save(writer, &self.prefix, "input_impl_empty")
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.taken = reader.count(&self.prefix, "i")? as u64;
        self.input.restore(reader, &self.prefix, "input_impl_empty")
    }
}
