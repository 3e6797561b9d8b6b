//! The interface of the iterators of a pipeline.

use crate::{Element, Pipeline, StateReader, StateWriter};
use status::{Code, Result};
use std::sync::Arc;
use std::task::{Poll, Waker};

/// An element, the end of the sequence, or nothing yet: the waker of the context is called when polling is worthwhile.
pub type Next = Poll<Result<Option<Element>>>;

/// Produces the elements of one dataset, in order.
pub trait Iterate: Send {
    /// The next element. An iterator that has returned the end or an error may be polled again.
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next;

    /// The iterators that this one reads. Those that read from the background are not among them.
    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        Vec::new()
    }

    /// Waits until nothing in the background changes the state that `save` writes, for this iterator and its inputs.
    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        settle_all(self.inputs(), ctx)
    }

    /// Writes its state and that of its inputs, such that a new iterator of an equal dataset can continue from there.
    /// Called when `poll_settle` is ready.
    fn save(&self, writer: &mut StateWriter) -> Result<()>;

    /// Continues from a saved state. Called on a new iterator.
    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()>;
}

/// Settles several iterators.
pub fn settle_all(iterators: Vec<&mut dyn Iterate>, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
    let mut pending = false;
    for iterator in iterators {
        match iterator.poll_settle(ctx) {
            Poll::Pending => pending = true,
            Poll::Ready(Ok(())) => {}
            error => return error,
        }
    }
    if pending { Poll::Pending } else { Poll::Ready(Ok(())) }
}

/// Maps the position of an element to the position of the element to return in its place; an error of code OutOfRange
/// means that there is none.
pub type IndexMapper = Arc<dyn Fn(usize) -> Result<usize> + Send + Sync>;

/// The next mapped position from `position` on, which moves behind it; none at the end. Positions for which the mapper
/// returns an error of code NotFound belong to other datasets and are passed over.
pub fn next_mapped(map: &IndexMapper, position: &mut usize) -> Result<Option<usize>> {
    loop {
        let mapped = map(*position);
        match mapped {
            Err(error) if error.code == Code::OutOfRange => return Ok(None),
            Err(error) if error.code == Code::NotFound => *position += 1,
            Err(error) => return Err(error),
            Ok(mapped) => {
                *position += 1;
                return Ok(Some(mapped));
            }
        }
    }
}

/// The context of a poll.
pub struct PollContext<'a> {
    /// The pipeline of the iterator.
    pub pipeline: &'a Arc<Pipeline>,
    /// Called when polling again is worthwhile.
    pub waker: &'a Waker,
    /// Set while a global shuffle reads: sources return the elements at the mapped positions.
    pub index_mapper: Option<IndexMapper>,
}

impl PollContext<'_> {
    /// The context of an iterator below this one, whose pipeline has an environment of its own.
    pub(crate) fn below<'a>(&'a self, pipeline: &'a Arc<Pipeline>) -> PollContext<'a> {
        PollContext { pipeline, waker: self.waker, index_mapper: self.index_mapper.clone() }
    }

    /// A context without an index mapper.
    pub fn new<'a>(pipeline: &'a Arc<Pipeline>, waker: &'a Waker) -> PollContext<'a> {
        PollContext { pipeline, waker, index_mapper: None }
    }
}
