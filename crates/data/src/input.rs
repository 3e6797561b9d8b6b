//! The input of an iterator, which is dropped when it has ended.

use crate::{Iterate, Next, PollContext, StateReader, StateWriter};
use status::{Result, cancelled};
use std::sync::Arc;
use std::task::{Poll, ready};

/// An input; after its end there is none, and its files and buffers are closed.
pub struct Input(Option<Box<dyn Iterate>>);

impl Input {
    /// An input that has not ended.
    pub fn new(iterator: Box<dyn Iterate>) -> Input {
        Input(Some(iterator))
    }

    /// No input.
    pub fn ended() -> Input {
        Input(None)
    }

    /// True if the input has ended.
    pub fn has_ended(&self) -> bool {
        self.0.is_none()
    }

    /// Drops the input.
    pub fn end(&mut self) {
        self.0 = None;
    }

    /// The next element; the end from then on if there was an end. An error once the pipeline is cancelled, so that a
    /// loop over elements that are not wanted ends.
    pub fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        let Some(iterator) = &mut self.0 else { return Poll::Ready(Ok(None)) };
        if ctx.pipeline.cancel().is_cancelled() {
            return Poll::Ready(Err(cancelled!("Iterator was cancelled")));
        }
        let next = ready!(iterator.poll_next(ctx));
        if matches!(next, Ok(None)) {
            self.0 = None;
        }
        Poll::Ready(next)
    }

    /// As `poll_next`, for an input that is kept at its end, because its state is saved there too.
    pub fn poll_kept(&mut self, ctx: &mut PollContext<'_>) -> Next {
        self.0.as_mut().map_or(Poll::Ready(Ok(None)), |iterator| iterator.poll_next(ctx))
    }

    /// The iterator, if the input has not ended.
    pub fn as_list(&mut self) -> Vec<&mut dyn Iterate> {
        self.0.iter_mut().map(|iterator| &mut **iterator as &mut dyn Iterate).collect()
    }

    /// Writes whether the input has ended under `prefix` and `key`, and its state if it has not.
    pub fn save(&self, writer: &mut StateWriter, prefix: &str, key: &str) -> Result<()> {
        writer.int(prefix, key, i64::from(self.0.is_none()));
        self.0.as_ref().map_or(Ok(()), |iterator| iterator.save(writer))
    }

    /// Restores what `save` wrote.
    pub fn restore(&mut self, reader: &Arc<StateReader>, prefix: &str, key: &str) -> Result<()> {
        if reader.int(prefix, key)? != 0 {
            self.0 = None;
        }
        self.restore_present(reader)
    }

    /// Writes the state of an input that never ends before its reader does.
    pub fn save_present(&self, writer: &mut StateWriter) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |iterator| iterator.save(writer))
    }

    /// Restores what `save_present` wrote.
    pub fn restore_present(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.0.as_mut().map_or(Ok(()), |iterator| iterator.restore(reader))
    }
}
