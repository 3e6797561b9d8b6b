//! Random access to cached elements: by position for users, and for global shuffles.

use crate::dataset::PendingElement;
use crate::{DatasetRef, Element, Input, Next, Pipeline, Place, PollContext, StateReader, StateWriter};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Code, Result, out_of_range};
use std::sync::Arc;
use std::task::{Poll, Wake, Waker, ready};

/// The elements that were asked for by position.
pub(super) struct RandomAccess {
    dataset: DatasetRef,
    read: Mutex<Read>,
    wakers: Arc<Wakers>,
    chosen: Mutex<FxHashMap<usize, Element>>,
}

/// The elements from the first one on, and the iterator that continues them.
#[derive(Default)]
struct Read {
    elements: Vec<Element>,
    input: Option<Input>,
}

/// The wakers of all requests that wait for the iterator.
#[derive(Default)]
struct Wakers(Mutex<Vec<Waker>>);

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        let waiting = std::mem::take(&mut *self.0.lock());
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl RandomAccess {
    /// Access to the elements of a dataset.
    pub(super) fn new(dataset: &DatasetRef) -> RandomAccess {
        RandomAccess {
            dataset: dataset.clone(),
            read: Mutex::default(),
            wakers: Arc::default(),
            chosen: Mutex::default(),
        }
    }

    /// The element at a position. All elements before it are read too, once.
    pub(super) fn element_at(self: &Arc<Self>, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        let (access, pipeline) = (self.clone(), pipeline.clone());
        Ok(Box::new(move |ctx| access.poll_read(ctx, &pipeline, index)))
    }

    fn poll_read(&self, ctx: &PollContext<'_>, pipeline: &Arc<Pipeline>, index: usize) -> Poll<Result<Element>> {
        let mut read = self.read.lock();
        let Read { elements, input } = &mut *read;
        while elements.len() <= index {
            let input = match input {
                Some(input) => input,
                None => match begin(pipeline, &self.dataset) {
                    Ok(begun) => input.insert(begun),
                    Err(error) => return Poll::Ready(Err(error)),
                },
            };
            self.wakers.0.lock().push(ctx.waker.clone());
            let waker = Waker::from(self.wakers.clone());
            match ready!(input.poll_next(&mut PollContext::new(ctx.pipeline, &waker))) {
                Ok(Some(element)) => elements.push(element),
                Ok(None) => {
                    let count = elements.len();
                    return Poll::Ready(Err(out_of_range!("Index out of range [0, {count}):{index}")));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(elements[index].clone()))
    }

    fn chosen(&self, index: usize) -> Option<Element> {
        self.chosen.lock().get(&index).cloned()
    }
}

fn begin(pipeline: &Arc<Pipeline>, dataset: &DatasetRef) -> Result<Input> {
    Place { pipeline: pipeline.clone(), prefix: "Iterator".into() }.input(dataset)
}

/// The positions that a global shuffle chooses for one iterator.
pub(super) struct GlobalShuffle {
    access: Arc<RandomAccess>,
    count: usize,
    pending: Option<(usize, PendingElement)>,
}

impl GlobalShuffle {
    /// A shuffle at its beginning.
    pub(super) fn new(access: Arc<RandomAccess>) -> GlobalShuffle {
        GlobalShuffle { access, count: 0, pending: None }
    }

    /// The element at the next position that the context chooses.
    pub(super) fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        let (index, element) = match &mut self.pending {
            Some(pending) => pending,
            None => match self.begin(ctx) {
                Ok(Begun::Pending(pending)) => self.pending.insert(pending),
                Ok(Begun::Known(element)) => return Poll::Ready(Ok(Some(element))),
                Err(error) => return ended(error),
            },
        };
        let (index, element) = (*index, ready!(element(ctx)));
        self.pending = None;
        match element {
            Ok(element) => {
                self.access.chosen.lock().insert(index, element.clone());
                Poll::Ready(Ok(Some(element)))
            }
            Err(error) => ended(error),
        }
    }

    fn begin(&mut self, ctx: &PollContext<'_>) -> Result<Begun> {
        let Some(map) = &ctx.index_mapper else {
            return Err(out_of_range!("a cache is read at random, but its pipeline has no global shuffle"));
        };
        let index = loop {
            self.count += 1;
            match map(self.count - 1) {
                Err(error) if error.code == Code::NotFound => {}
                mapped => break mapped?,
            }
        };
        match self.access.chosen(index) {
            Some(element) => Ok(Begun::Known(element)),
            None => Ok(Begun::Pending((index, self.access.dataset.element_at(ctx.pipeline, index)?))),
        }
    }

    /// Writes how many positions were taken.
    pub(super) fn save(&self, writer: &mut StateWriter, prefix: &str) {
        let begun = usize::from(self.pending.is_some());
        writer.int(prefix, "global_shuffle_iterator_next_index", (self.count - begun) as i64);
    }

    /// Continues where `save` was called.
    pub(super) fn restore(&mut self, reader: &StateReader, prefix: &str) {
        self.count = reader.count(prefix, "global_shuffle_iterator_next_index").unwrap_or(0);
    }
}

enum Begun {
    Known(Element),
    Pending((usize, PendingElement)),
}

/// OutOfRange ends the sequence.
fn ended(error: status::Error) -> Next {
    Poll::Ready(if error.code == Code::OutOfRange { Ok(None) } else { Err(error) })
}
