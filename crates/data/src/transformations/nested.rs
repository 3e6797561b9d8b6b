//! The iterator of a dataset that a function returned.

use crate::function::Call;
use crate::{Element, Iterate, Next, Place, PollContext, StateReader, StateWriter, dataset_of};
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
    Open(Box<dyn Iterate>),
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
        let dataset = returned_dataset(&result, function)?;
        let mut iterator = dataset.clone().iterate(&Place::root(ctx.pipeline, &self.prefix, &dataset))?;
        if let Some(saved) = self.saved.take() {
            iterator.restore(&saved)?;
        }
        self.state = State::Open(iterator);
        Poll::Ready(Ok(()))
    }

    /// The next element.
    pub(crate) fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        match &mut self.state {
            State::Open(iterator) => iterator.poll_next(ctx),
            State::Opening(_) => Poll::Pending,
        }
    }

    /// Waits until the state can be saved.
    pub(crate) fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        match &mut self.state {
            State::Open(iterator) => iterator.poll_settle(ctx),
            State::Opening(_) => Poll::Pending,
        }
    }

    /// Writes the state of the iterator.
    pub(crate) fn save(&self, writer: &mut StateWriter) -> Result<()> {
        match &self.state {
            State::Open(iterator) => iterator.save(writer),
            State::Opening(_) => Ok(()),
        }
    }
}

fn returned_dataset(result: &Element, function: &str) -> Result<crate::DatasetRef> {
    match result.as_slice() {
        [result] if result.variants().is_ok() && result.shape().rank() == 0 => dataset_of(result),
        _ => Err(invalid!("{function} must return a single scalar of dtype DT_VARIANT.")),
    }
}
