//! The iterator of several devices: element `i` goes to the device `i % devices`.

use super::Running;
use super::running::Answer;
use crate::budget::{STAGE_BYTES, Share, Sizing, cost};
use crate::{DatasetRef, Element, Pipeline, Spec};
use op::{Home, OnceCallback, Resource, StepEnv};
use parking_lot::Mutex;
use status::{Result, cancelled, failed_precondition, invalid};
use std::collections::VecDeque;
use std::sync::Arc;

/// An iterator that several devices share.
pub struct MultiDeviceIterator {
    spec: Spec,
    devices: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    incarnation: i64,
    buffer: Option<Arc<Buffer>>,
}

impl Resource for MultiDeviceIterator {
    const TYPE_NAME: &'static str = "N10tensorflow4data12_GLOBAL__N_119MultiDeviceIteratorE";
}

impl MultiDeviceIterator {
    /// An iterator of this number of devices, which is not initialized.
    pub fn new(spec: Spec, devices: usize) -> MultiDeviceIterator {
        MultiDeviceIterator { spec, devices, state: Mutex::default() }
    }

    /// Types and shapes of its elements.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Begins a dataset, of which at most `capacity` elements wait for each device. Returns the number of the
    /// incarnation, which calls of `next` must name.
    pub fn begin(&self, home: &Home, env: &StepEnv, dataset: DatasetRef, capacity: usize) -> Result<i64> {
        let pipeline = Pipeline::of(home, env, &dataset)?;
        let share = pipeline.budget().share(Sizing::Given, STAGE_BYTES);
        let running = Running::new(pipeline, dataset.clone())?;
        self.spec.check(dataset.spec())?;
        let shards = (0..self.devices).map(|_| Shard::default()).collect();
        let fetches = Mutex::new(Fetches { shards, share, next: 0, is_fetching: false, has_ended: false });
        let buffer = Arc::new(Buffer { running, capacity, fetches });
        let mut state = self.state.lock();
        state.incarnation += 1;
        let incarnation = state.incarnation;
        let old = state.buffer.replace(buffer);
        drop(state);
        drop(old); // outside the lock: it answers what waits
        Ok(incarnation)
    }

    /// Requests the next element of a device. The result withdraws the request when it is run.
    pub fn next(&self, shard: i32, incarnation: i64, answer: Answer<Option<Element>>) -> OnceCallback {
        match self.buffer(shard, incarnation) {
            Ok((buffer, shard)) => buffer.next(shard, answer),
            Err(error) => {
                answer(Err(error));
                OnceCallback::new(|| {})
            }
        }
    }

    fn buffer(&self, shard: i32, incarnation: i64) -> Result<(Arc<Buffer>, usize)> {
        let state = self.state.lock();
        let buffer = state.buffer.clone().ok_or_else(|| {
            failed_precondition!("GetNextFromShard() failed because the iterator has not been initialized.")
        })?;
        if incarnation != state.incarnation {
            let expected = state.incarnation;
            return Err(invalid!("Invalid incarnation id. Provided: {incarnation}; Expected: {expected}"));
        }
        let place = usize::try_from(shard).ok().filter(|&shard| shard < self.devices);
        let place = place.ok_or_else(|| invalid!("shard_num {shard} is not in [0, {})", self.devices))?;
        Ok((buffer, place))
    }
}

/// The elements that wait for the devices, and the requests that wait for elements.
struct Buffer {
    running: Arc<Running>,
    capacity: usize,
    fetches: Mutex<Fetches>,
}

struct Fetches {
    shards: Vec<Shard>,
    /// What the elements that wait take; requests are answered beyond its bound.
    share: Share,
    /// The shard of the next element.
    next: usize,
    is_fetching: bool,
    has_ended: bool,
}

#[derive(Default)]
struct Shard {
    elements: VecDeque<Result<Option<Element>>>,
    requests: VecDeque<Request>,
}

/// The answer to a request; none once it was withdrawn.
type Request = Arc<Mutex<Option<Answer<Option<Element>>>>>;

fn answered(request: &Request, result: Result<Option<Element>>) {
    let answer = request.lock().take();
    if let Some(answer) = answer {
        answer(result);
    }
}

fn cost_of_next(next: &Result<Option<Element>>) -> usize {
    next.as_ref().ok().and_then(Option::as_ref).map_or(size_of::<Element>(), cost)
}

impl Buffer {
    fn next(self: &Arc<Self>, shard: usize, answer: Answer<Option<Element>>) -> OnceCallback {
        let request: Request = Arc::new(Mutex::new(Some(answer)));
        let mut fetches = self.fetches.lock();
        let has_ended = fetches.has_ended;
        let place = &mut fetches.shards[shard];
        let taken = place.elements.pop_front();
        if taken.is_none() && !has_ended {
            place.requests.push_back(request.clone());
        }
        fetches.share.remove(taken.as_ref().map_or(0, cost_of_next));
        let ready = taken.or_else(|| has_ended.then_some(Ok(None)));
        drop(fetches);
        if let Some(result) = ready {
            answered(&request, result);
        }
        self.fetch();
        OnceCallback::new(move || answered(&request, Err(cancelled!("GetNextFromShard was cancelled"))))
    }

    /// Requests the next element, if its shard has room or waits for it. What other shards wait for comes after it.
    fn fetch(self: &Arc<Self>) {
        let mut fetches = self.fetches.lock();
        let Fetches { shards, share, next, .. } = &mut *fetches;
        shards.iter_mut().for_each(|shard| shard.requests.retain(|request| request.lock().is_some()));
        let has_room = !share.is_full() || shards.iter().any(|shard| !shard.requests.is_empty());
        let shard = &shards[*next];
        let is_wanted = shard.elements.len() < self.capacity && has_room || !shard.requests.is_empty();
        if fetches.is_fetching || fetches.has_ended || !is_wanted {
            return;
        }
        fetches.is_fetching = true;
        drop(fetches);
        let buffer = Arc::downgrade(self);
        let _ = self.running.next(Box::new(move |next| {
            if let Some(buffer) = buffer.upgrade() {
                buffer.deliver(next);
                buffer.fetch();
            }
        }));
    }

    fn deliver(&self, next: Result<Option<Element>>) {
        let mut fetches = self.fetches.lock();
        fetches.is_fetching = false;
        if matches!(next, Ok(None)) {
            fetches.has_ended = true;
            let waiting: Vec<Request> = fetches.shards.iter_mut().flat_map(|shard| shard.requests.drain(..)).collect();
            drop(fetches);
            return waiting.iter().for_each(|request| answered(request, Ok(None)));
        }
        let place = fetches.next;
        fetches.next = (place + 1) % fetches.shards.len();
        let shard = &mut fetches.shards[place];
        match shard.requests.pop_front() {
            Some(request) => {
                drop(fetches);
                answered(&request, next);
            }
            None => {
                let bytes = cost_of_next(&next);
                shard.elements.push_back(next);
                fetches.share.add(bytes);
            }
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let shards = &mut self.fetches.get_mut().shards;
        for request in shards.iter_mut().flat_map(|shard| shard.requests.drain(..)) {
            answered(&request, Err(cancelled!("Cancelled and buffer not filled.")));
        }
    }
}
