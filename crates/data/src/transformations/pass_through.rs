//! Datasets with the elements of their input.

use crate::dataset::only;
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, PendingElement, Pipeline, Place, PollContext,
    Spec, StateReader, StateWriter,
};
use status::Result;
use std::sync::Arc;
use std::task::{Poll, ready};

/// What a dataset does beside passing on elements.
pub(crate) trait Pass: Clone + Send + Sync + 'static {
    /// The type of the dataset without the suffix `Dataset`.
    const KIND: &'static str;

    /// Checks the place of a new iterator.
    fn check(&self, _place: &Place, _input: &DatasetRef) -> Result<()> {
        Ok(())
    }

    /// The environment of the input.
    fn environment(&self, pipeline: &Arc<Pipeline>) -> Arc<Pipeline> {
        pipeline.clone()
    }

    /// What to call with each element, and the number of elements before it.
    fn observer(&self, _pipeline: &Arc<Pipeline>) -> Option<Observer> {
        None
    }
}

/// Looks at an element, and the number of those before it.
pub(crate) type Observer = Box<dyn FnMut(&Element, u64) + Send>;

/// A dataset that passes on the elements of its input.
pub(crate) struct PassThrough<P> {
    pub input: DatasetRef,
    pub spec: Spec,
    pub pass: P,
}

impl<P: Pass> Dataset for PassThrough<P> {
    fn kind(&self) -> &'static str {
        P::KIND
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        let (spec, pass) = (self.spec.clone(), self.pass.clone());
        only(inputs).map(|input| -> DatasetRef { Arc::new(PassThrough { input, spec, pass }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        self.pass.check(place, &self.input)?;
        let pipeline = self.pass.environment(&place.pipeline);
        let below = Place { pipeline: pipeline.clone(), prefix: place.prefix.clone() };
        let observer = self.pass.observer(&place.pipeline);
        Ok(Box::new(PassIterator { input: below.input(&self.input)?, pipeline, observer, elements: 0 }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        self.input.element_at(&self.pass.environment(pipeline), index)
    }
}

struct PassIterator {
    input: Input,
    /// The environment of the input.
    pipeline: Arc<Pipeline>,
    observer: Option<Observer>,
    elements: u64,
}

impl Iterate for PassIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        let mut below =
            PollContext { pipeline: &self.pipeline, waker: ctx.waker, index_mapper: ctx.index_mapper.clone() };
        let next = ready!(self.input.poll_kept(&mut below));
        if let (Ok(Some(element)), Some(observe)) = (&next, &mut self.observer) {
            observe(element, self.elements);
            self.elements += 1;
        }
        Poll::Ready(next)
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        self.input.save_present(writer)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.input.restore_present(reader)
    }
}
