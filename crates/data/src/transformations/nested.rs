//! The iterator of a dataset that a function returned.

use crate::dataset::dataset_and_stages;
use crate::function::Call;
use crate::limits::stages_of;
use crate::rewrite::rewritten_nested;
use crate::{DatasetRef, Element, Iterate, Next, Pipeline, Place, PollContext, StateReader, StateWriter};
use status::{Error, Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};

/// The iterator of the dataset that a call returns. It can be polled once `poll_open` is ready.
pub(crate) struct Nested {
    state: State,
    prefix: String,
    saved: Option<Arc<StateReader>>,
}

enum State {
    Opening(Call),
    /// With the pipeline of the iterator.
    Open(Box<dyn Iterate>, Arc<Pipeline>),
}

impl Nested {
    /// An iterator of the result of `call`, whose name begins with `prefix`.
    pub(crate) fn new(call: Call, prefix: String) -> Nested {
        Nested { state: State::Opening(call), prefix, saved: None }
    }

    /// As `new`, for an iterator that continues from a saved state.
    pub(crate) fn restored(call: Call, prefix: String, saved: &Arc<StateReader>) -> Nested {
        Nested { state: State::Opening(call), prefix, saved: Some(saved.clone()) }
    }

    /// Waits for the function and creates the iterator. After an error the caller drops this value.
    pub(crate) fn poll_open(
        &mut self,
        ctx: &mut PollContext<'_>,
        function: &str,
        failed: impl FnOnce(Error) -> Error,
    ) -> Poll<Result<()>> {
        let State::Opening(call) = &mut self.state else { return Poll::Ready(Ok(())) };
        let result = ready!(call.poll(ctx)).map_err(failed)?;
        let (dataset, stages) = returned_dataset(&result, function)?;
        let before = dataset;
        let dataset = rewritten_nested(&before, &ctx.pipeline.options().rewrites);
        let stages = if Arc::ptr_eq(&before, &dataset) { stages } else { stages_of(&dataset) };
        let pipeline = ctx.pipeline.nested(stages)?;
        let mut iterator = dataset.clone().iterate(&Place::root(&pipeline, &self.prefix, &dataset))?;
        if let Some(saved) = self.saved.take() {
            iterator.restore(&saved)?;
        }
        self.state = State::Open(iterator, pipeline);
        Poll::Ready(Ok(()))
    }

    /// The next element.
    pub(crate) fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        match &mut self.state {
            State::Open(iterator, pipeline) => iterator.poll_next(&mut ctx.below(pipeline)),
            State::Opening(_) => Poll::Pending,
        }
    }

    /// Waits until the state can be saved.
    pub(crate) fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        match &mut self.state {
            State::Open(iterator, pipeline) => iterator.poll_settle(&mut ctx.below(pipeline)),
            State::Opening(_) => Poll::Pending,
        }
    }

    /// Writes the state of the iterator.
    pub(crate) fn save(&self, writer: &mut StateWriter) -> Result<()> {
        match &self.state {
            State::Open(iterator, _) => iterator.save(writer),
            State::Opening(_) => Ok(()),
        }
    }
}

fn returned_dataset(result: &Element, function: &str) -> Result<(DatasetRef, usize)> {
    match result.as_slice() {
        [result] if result.variants().is_ok() && result.shape().rank() == 0 => dataset_and_stages(result),
        _ => Err(invalid!("{function} must return a single scalar of dtype DT_VARIANT.")),
    }
}
