//! SkipDataset: all but the first elements.

use super::empty::Empty;
use super::random_access::check_index;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar};
use crate::dataset::{PendingElement, only};
use crate::iterate::IndexMapper;
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, failed_precondition, out_of_range};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SkipDataset(input_dataset: variant, count: int64) -> handle: variant; output_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1; metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_kernel(setup, |_, inputs| {
        let count: i64 = scalar(inputs, 1, "count")?;
        Ok(Skip { input: input_dataset(inputs, 0)?, count: u64::try_from(count).ok() })
    })
}

#[derive(Clone)]
pub(crate) struct Skip {
    input: DatasetRef,
    /// None: skips all elements.
    count: Option<u64>,
}

impl Skip {
    /// True if it has the elements of its input.
    pub(crate) fn skips_none(&self) -> bool {
        self.count == Some(0)
    }
}

impl Dataset for Skip {
    fn kind(&self) -> &'static str {
        if self.count.is_none() { "EmptySkip" } else { "FiniteSkip" }
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(Skip { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let Some(count) = self.count else { return Ok(Box::new(Empty)) };
        let input = place.input(&self.input)?;
        Ok(Box::new(SkipIterator { input, count, skipped: 0, prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().map(|count| self.count.map_or(0, |skipped| count.saturating_sub(skipped)))
    }

    fn check_random_indexing(&self, inputs: Vec<Result<()>>) -> Result<()> {
        if self.count.is_none() {
            return Err(failed_precondition!(
                "Global shuffling does not support empty dataset or skipping the entire dataset. Got skip(-1)."
            ));
        }
        inputs.into_iter().collect()
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        check_index(self, "Skip", index)?;
        self.input.element_at(pipeline, index + self.count.unwrap_or(0) as usize)
    }
}

struct SkipIterator {
    input: Input,
    count: u64,
    skipped: u64,
    prefix: Arc<str>,
}

impl SkipIterator {
    /// Element `n` here is element `n + count` of the input.
    fn poll_mapped(&mut self, ctx: &mut PollContext<'_>, map: IndexMapper) -> Next {
        let count = self.count as usize;
        let shifted: IndexMapper =
            Arc::new(move |index| map(index)?.checked_add(count).ok_or_else(|| out_of_range!("No such element")));
        let mut inner = PollContext { index_mapper: Some(shifted), ..PollContext::new(ctx.pipeline, ctx.waker) };
        self.input.poll_next(&mut inner)
    }
}

impl Iterate for SkipIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if let Some(map) = ctx.index_mapper.clone() {
            return self.poll_mapped(ctx, map);
        }
        while self.skipped < self.count {
            match ready!(self.input.poll_next(ctx)) {
                Ok(Some(_)) => self.skipped += 1,
                end => return Poll::Ready(end),
            }
        }
        self.input.poll_next(ctx)
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        writer.int(&self.prefix, "i", self.skipped as i64);
        self.input.save(writer, &self.prefix, "input_impl_empty")
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.skipped = reader.count(&self.prefix, "i")? as u64;
        self.input.restore(reader, &self.prefix, "input_impl_empty")
    }
}
