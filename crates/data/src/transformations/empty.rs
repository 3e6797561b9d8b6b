//! The iterator of datasets that are known to have no elements.

use crate::{Iterate, Next, PollContext, StateReader, StateWriter};
use status::Result;
use std::sync::Arc;
use std::task::Poll;

/// An iterator that ends at once and reads no input.
pub(crate) struct Empty;

impl Iterate for Empty {
    fn poll_next(&mut self, _: &mut PollContext<'_>) -> Next {
        Poll::Ready(Ok(None))
    }

    fn save(&self, _: &mut StateWriter) -> Result<()> {
        Ok(())
    }

    fn restore(&mut self, _: &Arc<StateReader>) -> Result<()> {
        Ok(())
    }
}
