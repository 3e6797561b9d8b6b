//! A running pipeline: answers requests for elements in the order in which they arrive, one at a time.

use crate::rewrite::rewritten;
use crate::transformations::saved::{read_input, write_input};
use crate::{DatasetRef, Element, Input, Pipeline, Place, PollContext, StateReader, StateWriter, Task, Work};
use op::OnceCallback;
use parking_lot::Mutex;
use status::{Code, Error, Result, cancelled, internal};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Poll, Waker, ready};
use tensor::Tensor;

/// The prefix of the iterators of a pipeline, as in TensorFlow.
const ROOT: &str = "Iterator::Root";

/// Receives the answer to a request.
pub type Answer<T> = Box<dyn FnOnce(Result<T>) + Send>;

/// A pipeline with the requests for its elements.
pub struct Running {
    pipeline: Arc<Pipeline>,
    dataset: DatasetRef,
    requests: Arc<Mutex<VecDeque<Request>>>,
    task: Arc<Task<Driver>>,
}

enum Request {
    Next(Withdrawable<Option<Element>>),
    Save(Withdrawable<Tensor>),
}

impl Request {
    /// Answers with an error, unless it was withdrawn.
    fn fail(&self, error: &Error) {
        let _ = match self {
            Request::Next(place) => place.answer(Err(error.clone())).is_ok(),
            Request::Save(place) => place.answer(Err(error.clone())).is_ok(),
        };
    }
}

/// The place of an answer: the request can be withdrawn, which answers it with an error.
struct Withdrawable<T>(Arc<Mutex<Option<Answer<T>>>>);

impl<T> Clone for Withdrawable<T> {
    fn clone(&self) -> Self {
        Withdrawable(self.0.clone())
    }
}

impl<T> Withdrawable<T> {
    fn is_open(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Gives the result back if nothing waits for it any more.
    fn answer(&self, result: Result<T>) -> std::result::Result<(), Result<T>> {
        let answer = self.0.lock().take();
        match answer {
            Some(answer) => {
                answer(result);
                Ok(())
            }
            None => Err(result),
        }
    }
}

impl Running {
    /// A pipeline at its beginning.
    pub fn new(pipeline: Arc<Pipeline>, dataset: DatasetRef) -> Result<Arc<Running>> {
        Running::at(pipeline, dataset, None)
    }

    /// A pipeline that continues from a saved state.
    pub fn restored(pipeline: Arc<Pipeline>, dataset: DatasetRef, state: &Arc<StateReader>) -> Result<Arc<Running>> {
        Running::at(pipeline, dataset, Some(state))
    }

    fn at(pipeline: Arc<Pipeline>, dataset: DatasetRef, state: Option<&Arc<StateReader>>) -> Result<Arc<Running>> {
        let last = rewritten(&dataset, &pipeline.options().rewrites);
        let place = Place::root(&pipeline, ROOT, &last);
        let mut iterator = place.begin(&last)?;
        if let Some(state) = state {
            read_input(state, ROOT, &mut iterator)?;
        }
        let requests = Arc::<Mutex<VecDeque<Request>>>::default();
        let driver = Driver {
            pipeline: pipeline.clone(),
            prefix: place.prefix,
            iterator,
            requests: requests.clone(),
            undelivered: None,
        };
        let task = Task::new(pipeline.spawn().clone(), driver);
        Ok(Arc::new(Running { pipeline, dataset, requests, task }))
    }

    /// The dataset.
    pub fn dataset(&self) -> &DatasetRef {
        &self.dataset
    }

    /// Requests the next element. The result withdraws the request when it is run: the element, if it comes, goes to the
    /// next request.
    pub fn next(&self, answer: Answer<Option<Element>>) -> OnceCallback {
        self.submit(Request::Next, answer)
    }

    /// Requests the state of all iterators. The result withdraws the request when it is run.
    pub fn save(&self, answer: Answer<Tensor>) -> OnceCallback {
        self.submit(Request::Save, answer)
    }

    fn submit<T: 'static>(&self, request: fn(Withdrawable<T>) -> Request, answer: Answer<T>) -> OnceCallback {
        let place = Withdrawable(Arc::new(Mutex::new(Some(answer))));
        self.requests.lock().push_back(request(place.clone()));
        self.task.start();
        OnceCallback::new(move || {
            let _ = place.answer(Err(cancelled!("The request for an element was cancelled")));
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.pipeline.cancel().cancel(cancelled!("The iterator was destroyed or initialized again"));
        self.task.run_here();
        let left = std::mem::take(&mut *self.requests.lock());
        let ended = cancelled!("The iterator was destroyed or initialized again");
        left.iter().for_each(|request| request.fail(&ended));
    }
}

/// Polls the iterators for the first request.
struct Driver {
    pipeline: Arc<Pipeline>,
    prefix: Arc<str>,
    iterator: Input,
    requests: Arc<Mutex<VecDeque<Request>>>,
    /// An element whose request was withdrawn.
    undelivered: Option<Result<Option<Element>>>,
}

impl Work for Driver {
    fn turn(&mut self, waker: &Waker) {
        if self.pipeline.cancel().is_cancelled() {
            return self.iterator.end(); // what it waits for holds wakers, and so this task
        }
        while let Poll::Ready(true) = self.poll_request(waker) {}
    }

    fn fail(&mut self, error: Error) {
        self.iterator.end(); // its state may be inconsistent
        let left = std::mem::take(&mut *self.requests.lock());
        left.iter().for_each(|request| request.fail(&error));
    }
}

impl Driver {
    /// Answers the first request; false if there is none.
    fn poll_request(&mut self, waker: &Waker) -> Poll<bool> {
        enum Wanted {
            Next(Withdrawable<Option<Element>>),
            Save(Withdrawable<Tensor>),
        }
        let wanted = match self.requests.lock().front() {
            None => return Poll::Ready(false),
            Some(Request::Next(place)) => Wanted::Next(place.clone()),
            Some(Request::Save(place)) => Wanted::Save(place.clone()),
        };
        match wanted {
            Wanted::Next(place) if place.is_open() => {
                let next = ready!(self.poll_next(waker));
                self.requests.lock().pop_front();
                self.undelivered = place.answer(next).err();
            }
            Wanted::Save(place) if place.is_open() => {
                let state = ready!(self.poll_save(waker));
                self.requests.lock().pop_front();
                let _ = place.answer(state);
            }
            _ => drop(self.requests.lock().pop_front()),
        }
        Poll::Ready(true)
    }

    fn poll_next(&mut self, waker: &Waker) -> Poll<Result<Option<Element>>> {
        if let Some(next) = self.undelivered.take() {
            return Poll::Ready(next);
        }
        let mut ctx = PollContext::new(&self.pipeline, waker);
        let polled = catch_unwind(AssertUnwindSafe(|| self.iterator.poll_kept(&mut ctx)));
        let next = ready!(polled.unwrap_or_else(|_| {
            self.iterator.end(); // its state may be inconsistent
            Poll::Ready(Err(internal!("The input pipeline failed unexpectedly; initialize the iterator again")))
        }));
        Poll::Ready(next.map_err(|error| self.described(error)))
    }

    /// OutOfRange means the end of a sequence, which is not an error here.
    fn described(&self, error: Error) -> Error {
        if error.code != Code::OutOfRange {
            return error;
        }
        internal!(
            "Iterator {} returned `OutOfRange`. This indicates an implementation error as `OutOfRange` errors are not \
             expected to be returned here. Original message: {}",
            self.prefix,
            error.message
        )
    }

    fn poll_save(&mut self, waker: &Waker) -> Poll<Result<Tensor>> {
        let mut ctx = PollContext::new(&self.pipeline, waker);
        if let Err(error) = ready!(crate::iterate::settle_all(self.iterator.as_list(), &mut ctx)) {
            return Poll::Ready(Err(error));
        }
        let mut writer = StateWriter::default();
        let saved = write_input(&mut writer, ROOT, &self.iterator);
        Poll::Ready(saved.and_then(|()| writer.finish()))
    }
}
