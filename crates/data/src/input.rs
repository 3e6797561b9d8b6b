//! The input of an iterator, which is dropped when it has ended.

use crate::limits::Counted;
use crate::{Iterate, Next, PollContext, StateReader, StateWriter};
use status::{Code, Error, Result, cancelled};
use std::sync::Arc;
use std::task::{Poll, ready};

/// An input; after its end there is none, and its files and buffers are closed. Errors that pass through it name the
/// iterator and the position of the element.
pub struct Input {
    iterator: Option<Box<dyn Iterate>>,
    has_ended: bool,
    /// True while the iterator computes an element that was asked for.
    is_reading: bool,
    /// Keeps the iterator at its end, because its state is saved there too.
    is_kept: bool,
    /// The name of the iterator.
    prefix: Arc<str>,
    /// The number of elements and errors that it returned since it began or was restored.
    returned: u64,
    /// Counts it as an iterator of its pipeline.
    counted: Option<Counted>,
}

impl Input {
    /// An input that has not ended, with the name of its iterator.
    pub fn new(iterator: Box<dyn Iterate>, prefix: Arc<str>) -> Input {
        Input { iterator: Some(iterator), has_ended: false, prefix, ..Input::ended() }
    }

    /// The same, which writes its state after its end too: TensorFlow's iterators of some kinds expect it there.
    pub(crate) fn kept(self) -> Input {
        Input { is_kept: true, ..self }
    }

    /// The same, which is counted until it is dropped.
    pub(crate) fn counted(self, counted: Counted) -> Input {
        Input { counted: Some(counted), ..self }
    }

    /// No input.
    pub fn ended() -> Input {
        Input {
            iterator: None,
            has_ended: true,
            is_reading: false,
            is_kept: false,
            prefix: Arc::default(),
            returned: 0,
            counted: None,
        }
    }

    /// True if the input has ended.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// True after a request whose element is not there yet. The iterator has begun with it, and its saved state would lack it:
    /// a stage that asks for elements before they are needed takes this one before it settles.
    pub fn is_reading(&self) -> bool {
        self.is_reading
    }

    /// Ends the input, and drops its iterator unless it is kept.
    pub fn end(&mut self) {
        self.has_ended = true;
        self.is_reading = false;
        if !self.is_kept {
            self.iterator = None;
            self.counted = None;
        }
    }

    /// The next element; the end from then on if there was an end. An error once the pipeline is cancelled, so that a
    /// loop over elements that are not wanted ends.
    pub fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.has_ended {
            return Poll::Ready(Ok(None));
        }
        if ctx.pipeline.cancel().is_cancelled() {
            return Poll::Ready(Err(cancelled!("Iterator was cancelled")));
        }
        let next = ready!(self.poll_kept(ctx));
        if matches!(next, Ok(None)) {
            self.end();
        }
        Poll::Ready(next)
    }

    /// As `poll_next`, for an input that is asked again after its end.
    pub fn poll_kept(&mut self, ctx: &mut PollContext<'_>) -> Next {
        let Some(iterator) = &mut self.iterator else { return Poll::Ready(Ok(None)) };
        let polled = iterator.poll_next(ctx);
        self.is_reading = polled.is_pending();
        let next = ready!(polled);
        let position = self.returned;
        self.returned += u64::from(!matches!(next, Ok(None)));
        if next.is_err() {
            return Poll::Ready(next.map_err(|error| at_element(error, position, &self.prefix)));
        }
        Poll::Ready(next)
    }

    /// The iterator, if the input has not ended.
    pub fn as_list(&mut self) -> Vec<&mut dyn Iterate> {
        self.iterator.iter_mut().map(|iterator| &mut **iterator as &mut dyn Iterate).collect()
    }

    /// Writes whether the input has ended under `prefix` and `key`, and its state if it has not.
    pub fn save(&self, writer: &mut StateWriter, prefix: &str, key: &str) -> Result<()> {
        writer.int(prefix, key, i64::from(self.has_ended));
        self.iterator.as_ref().map_or(Ok(()), |iterator| iterator.save(writer))
    }

    /// Restores what `save` wrote.
    pub fn restore(&mut self, reader: &Arc<StateReader>, prefix: &str, key: &str) -> Result<()> {
        if reader.int(prefix, key)? != 0 {
            self.end();
        }
        self.restore_present(reader)
    }

    /// Writes the state of an input that never ends before its reader does.
    pub fn save_present(&self, writer: &mut StateWriter) -> Result<()> {
        self.iterator.as_ref().map_or(Ok(()), |iterator| iterator.save(writer))
    }

    /// Restores what `save_present` wrote.
    pub fn restore_present(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        if self.has_ended && self.is_kept {
            self.restore_ended(reader);
            return Ok(());
        }
        self.iterator.as_mut().map_or(Ok(()), |iterator| iterator.restore(reader))
    }
}

impl Input {
    /// Nothing is read after the end, so a state without that of the input is as good.
    fn restore_ended(&mut self, reader: &Arc<StateReader>) {
        if self.iterator.as_mut().is_some_and(|iterator| iterator.restore(reader).is_err()) {
            self.iterator = None;
        }
    }
}

/// What the places of errors begin with, as TensorFlow's names of nodes do.
const PLACE: &str = "\n\t [[element ";

/// The error with the position of its element, counted from zero, and its iterator at the end of the message, unless it
/// has them from an input of the iterator. A cancellation concerns no element.
pub(crate) fn at_element(error: Error, position: u64, prefix: &str) -> Error {
    if error.code == Code::Cancelled || error.message.contains(PLACE) {
        return error;
    }
    Error { message: format!("{}{PLACE}{position} of iterator {prefix}]]", error.message), ..error }
}
