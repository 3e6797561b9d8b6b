//! RepeatDataset: the elements several times, or without end.

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
    def: "RepeatDataset(input_dataset: variant, count: int64) -> handle: variant; output_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1; metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_kernel(setup, |_, inputs| {
        let count: i64 = scalar(inputs, 1, "count")?;
        Ok(Repeat { input: input_dataset(inputs, 0)?, count: u64::try_from(count).ok() })
    })
}

#[derive(Clone)]
pub(crate) struct Repeat {
    pub input: DatasetRef,
    /// None: without end.
    pub count: Option<u64>,
}

impl Repeat {
    /// True if it has the elements of its input.
    pub(crate) fn is_once(&self) -> bool {
        self.count == Some(1)
    }
}

impl Dataset for Repeat {
    fn kind(&self) -> &'static str {
        match self.count {
            None => "ForeverRepeat",
            Some(0) => "EmptyRepeat",
            Some(_) => "FiniteRepeat",
        }
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(Repeat { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        if self.count == Some(0) {
            return Ok(Box::new(Empty));
        }
        let input = place.input_at(&self.input, 0)?;
        Ok(Box::new(RepeatIterator { input, repetition: 0, is_empty: true, dataset: self, place: place.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        match (self.input.cardinality(), self.count) {
            (_, Some(0)) | (Cardinality::Finite(0), _) => Cardinality::Finite(0),
            (_, None) => Cardinality::Infinite,
            (known, Some(repetitions)) => known.map(|count| count.saturating_mul(repetitions)),
        }
    }

    fn check_random_indexing(&self, inputs: Vec<Result<()>>) -> Result<()> {
        inputs.into_iter().collect::<Result<()>>()?;
        match self.count {
            Some(1..) => Ok(()),
            count => {
                let count = if count.is_some() { 0 } else { -1 };
                Err(failed_precondition!("`repeat({count})` does not support random access of tf.data datasets."))
            }
        }
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        check_index(self, "Repeat", index)?;
        match self.input.cardinality() {
            Cardinality::Finite(count) if count > 0 => self.input.element_at(pipeline, index % count as usize),
            _ => Err(failed_precondition!("The repeated dataset has no known number of elements")),
        }
    }
}

struct RepeatIterator {
    input: Input,
    repetition: u64,
    /// No element has come in this repetition.
    is_empty: bool,
    dataset: Arc<Repeat>,
    place: Place,
}

impl RepeatIterator {
    /// The next element of this repetition.
    fn poll_repetition(&mut self, ctx: &mut PollContext<'_>) -> Next {
        let Some(map) = &ctx.index_mapper else { return self.input.poll_next(ctx) };
        let mapper = self.mapper(map.clone());
        let mut inner = PollContext { index_mapper: mapper, ..PollContext::new(ctx.pipeline, ctx.waker) };
        self.input.poll_next(&mut inner)
    }

    /// Maps over all repetitions, so that elements are shuffled across them.
    fn mapper(&self, map: IndexMapper) -> Option<IndexMapper> {
        let Cardinality::Finite(count) = self.dataset.input.cardinality() else { return Some(map) };
        let (count, before) = (count as usize, (count as usize).saturating_mul(self.repetition as usize));
        Some(Arc::new(move |index| {
            if index >= count {
                return Err(out_of_range!("Finite repeat is out of range"));
            }
            Ok(map(before.saturating_add(index))? % count)
        }))
    }

    /// Begins the next repetition, if there is one.
    fn advance(&mut self) -> Result<()> {
        if self.dataset.count.is_none() && self.is_empty {
            return Ok(()); // an endless repetition of nothing ends
        }
        self.repetition += 1;
        if self.dataset.count.is_none_or(|count| self.repetition < count) {
            self.open()?;
        }
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        self.is_empty = true;
        self.input = self.place.input_at(&self.dataset.input, self.repetition as usize)?;
        Ok(())
    }
}

impl Iterate for RepeatIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.input.has_ended() && self.dataset.count.is_none() {
            self.open()?;
        }
        while !self.input.has_ended() {
            let next = ready!(self.poll_repetition(ctx));
            if !matches!(next, Ok(None)) {
                self.is_empty &= next.is_err();
                return Poll::Ready(next);
            }
            self.advance()?;
        }
        Poll::Ready(Ok(None))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        writer.int(&self.place.prefix, "i", self.repetition as i64);
        self.input.save(writer, &self.place.prefix, "input_impl_empty")
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.repetition = reader.count(&self.place.prefix, "i")? as u64;
        self.open()?;
        self.is_empty = reader.int(&self.place.prefix, "input_impl_empty")? != 0;
        self.input.restore(reader, &self.place.prefix, "input_impl_empty")
    }
}
