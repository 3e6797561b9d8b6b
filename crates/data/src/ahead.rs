//! Reads an iterator in the background, ahead of its consumer.

use crate::budget::{Share, cost_of};
use crate::iterate::{IndexMapper, settle_all};
use crate::{Element, Input, Next, Pipeline, PollContext, Task, Work};
use parking_lot::Mutex;
use status::{Error, Result, internal};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Poll, Waker};

/// An iterator that is read in the background into a buffer of at most a number of elements, and while its share of the
/// memory is not full; one element is read ahead in any case. The reading begins with the first request, waits while the
/// state is saved, and ends when this is dropped.
pub struct Ahead {
    shared: Arc<Mutex<Shared>>,
    reader: Arc<Task<Reader>>,
}

/// What the consumer and the reader share.
struct Shared {
    buffer: VecDeque<Result<Element>>,
    share: Share,
    limit: usize,
    growth: Option<Growth>,
    ended: bool,
    /// True while no turn of the reader runs or is expected.
    idle: bool,
    stopped: bool,
    /// True from a request to settle to the next request for an element.
    paused: bool,
    settled: Option<Result<()>>,
    consumer: Option<Waker>,
    index_mapper: Option<IndexMapper>,
}

/// What the reader does next.
enum Plan {
    Read(Option<IndexMapper>),
    Settle,
    Wait,
    Stop,
}

impl Shared {
    fn plan(&mut self, in_element: bool) -> Plan {
        let plan = match () {
            _ if self.stopped => Plan::Stop,
            _ if in_element => Plan::Read(self.index_mapper.clone()),
            _ if self.paused && self.settled.is_none() => Plan::Settle,
            _ if self.paused || self.ended || self.is_full() => Plan::Wait,
            _ => Plan::Read(self.index_mapper.clone()),
        };
        self.idle = matches!(plan, Plan::Wait | Plan::Stop);
        plan
    }

    fn is_full(&self) -> bool {
        self.buffer.len() >= self.limit || (self.share.is_full() && !self.buffer.is_empty())
    }

    /// True if the reader should be woken: not for each element, because waking costs more than a cheap element.
    fn wants_reader(&self) -> bool {
        self.idle && !self.ended && !self.stopped && self.has_slack()
    }

    fn has_slack(&self) -> bool {
        self.buffer.is_empty() || self.buffer.len() <= self.limit / 2 && self.share.is_roomy()
    }

    fn pop(&mut self) -> Option<Result<Element>> {
        let next = self.buffer.pop_front()?;
        let bytes = cost_of(&next);
        self.share.remove(bytes);
        self.adapt(bytes);
        Some(next)
    }

    fn push(&mut self, next: Result<Element>) {
        self.share.add(cost_of(&next));
        self.buffer.push_back(next);
    }

    /// Changes a limit that is left to the runtime, after an element was taken: doubles it when the buffer was full once and
    /// is empty now, because a larger one would have helped; halves it while the pipeline has no memory left for buffers.
    fn adapt(&mut self, bytes: usize) {
        let Some(growth) = &mut self.growth else { return };
        growth.was_full |= self.buffer.len() + 1 >= self.limit;
        if self.share.is_budget_used_up() {
            if self.buffer.len() <= self.limit / 2 {
                self.limit = growth.least.max(self.limit / 2);
            }
        } else if growth.was_full && self.buffer.is_empty() {
            let doubled = self.limit.saturating_mul(2);
            if doubled.saturating_mul(bytes) <= self.share.most() {
                self.limit = doubled;
                growth.was_full = false;
            }
        }
    }
}

/// How a limit changes that is left to the runtime.
struct Growth {
    least: usize,
    was_full: bool,
}

impl Ahead {
    /// An input that is read up to `limit` elements ahead; at least one. No further one is read while `share` is full.
    pub fn new(pipeline: &Arc<Pipeline>, input: Input, limit: usize, share: Share) -> Ahead {
        let shared = Arc::new(Mutex::new(Shared {
            buffer: VecDeque::new(),
            share,
            limit: limit.max(1),
            growth: None,
            ended: false,
            idle: true,
            stopped: false,
            paused: false,
            settled: None,
            consumer: None,
            index_mapper: None,
        }));
        let reader = Reader { pipeline: pipeline.clone(), input, in_element: false, shared: shared.clone() };
        Ahead { shared, reader: Task::new(pipeline.spawn().clone(), reader) }
    }

    /// Begins the reading.
    pub fn start(&self) {
        if std::mem::take(&mut self.shared.lock().idle) {
            self.reader.start();
        }
    }

    /// The next element; also begins or continues the reading.
    pub fn poll_next(&mut self, ctx: &PollContext<'_>) -> Next {
        let (next, wakes_reader) = {
            let mut shared = self.shared.lock();
            shared.resume(ctx);
            let next = match shared.pop() {
                Some(next) => Poll::Ready(next.map(Some)),
                None if shared.ended => Poll::Ready(Ok(None)),
                None => {
                    shared.consumer = Some(ctx.waker.clone());
                    Poll::Pending
                }
            };
            let wakes_reader = shared.wants_reader();
            shared.idle &= !wakes_reader;
            (next, wakes_reader)
        };
        if wakes_reader {
            self.reader.start();
        }
        next
    }

    /// True if the input has ended and everything was taken from the buffer.
    pub fn has_ended(&self) -> bool {
        let shared = self.shared.lock();
        shared.ended && shared.buffer.is_empty()
    }

    /// The same, with a limit that adapts to the consumer and is never smaller than now.
    pub fn adapting(self) -> Ahead {
        {
            let mut shared = self.shared.lock();
            shared.growth = Some(Growth { least: shared.limit, was_full: false });
        }
        self
    }

    /// Waits until the reader is between two elements and its input is settled. Reading goes on with the next request for
    /// an element.
    pub fn poll_settle(&mut self, ctx: &PollContext<'_>) -> Poll<Result<()>> {
        {
            let mut shared = self.shared.lock();
            if let Some(settled) = &shared.settled {
                return Poll::Ready(settled.clone());
            }
            shared.paused = true;
            shared.consumer = Some(ctx.waker.clone());
            if !std::mem::take(&mut shared.idle) {
                return Poll::Pending;
            }
        }
        self.reader.start();
        Poll::Pending
    }

    /// Calls a function with the buffered elements and the input. The reader must be settled, or never have begun.
    pub fn with<T>(&self, f: impl FnOnce(&mut VecDeque<Result<Element>>, &mut Input) -> T) -> T {
        self.reader.with(|reader| {
            let mut buffer = std::mem::take(&mut self.shared.lock().buffer);
            let result = f(&mut buffer, &mut reader.input);
            let mut shared = self.shared.lock();
            shared.share.set(buffer.iter().map(cost_of).sum());
            shared.ended = reader.input.has_ended();
            shared.buffer = buffer;
            result
        })
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        let (buffer, consumer) = {
            let mut shared = self.shared.lock();
            shared.stopped = true;
            shared.share.set(0);
            (std::mem::take(&mut shared.buffer), shared.consumer.take())
        };
        drop((buffer, consumer)); // outside the lock: it may end pipelines
        self.reader.run_here();
    }
}

impl Shared {
    fn resume(&mut self, ctx: &PollContext<'_>) {
        self.paused = false;
        self.settled = None;
        if self.index_mapper.is_none() {
            self.index_mapper = ctx.index_mapper.clone();
        }
    }
}

/// Polls the input.
struct Reader {
    pipeline: Arc<Pipeline>,
    input: Input,
    /// True while the input computes an element.
    in_element: bool,
    shared: Arc<Mutex<Shared>>,
}

impl Work for Reader {
    fn turn(&mut self, waker: &Waker) {
        while self.advance(waker) {}
    }

    fn fail(&mut self, error: Error) {
        self.input.end(); // its state may be inconsistent
        self.in_element = false;
        self.publish(|shared| {
            (shared.ended, shared.idle) = (true, true);
            shared.settled = shared.paused.then(|| Err(error.clone()));
            shared.push(Err(error));
        });
    }
}

impl Reader {
    /// Takes one step; false if there is none that can be taken now.
    fn advance(&mut self, waker: &Waker) -> bool {
        let plan = self.shared.lock().plan(self.in_element);
        match plan {
            Plan::Read(index_mapper) => self.read(waker, index_mapper),
            Plan::Settle => self.settle(waker),
            Plan::Wait => false,
            Plan::Stop => {
                self.input.end();
                false
            }
        }
    }

    fn read(&mut self, waker: &Waker, index_mapper: Option<IndexMapper>) -> bool {
        let mut ctx = PollContext { pipeline: &self.pipeline, waker, index_mapper };
        let polled = catch_unwind(AssertUnwindSafe(|| self.input.poll_kept(&mut ctx)));
        let polled = polled.unwrap_or_else(|_| {
            self.input.end(); // its state may be inconsistent
            Poll::Ready(Err(internal!("The input pipeline failed unexpectedly; initialize the iterator again")))
        });
        self.in_element = polled.is_pending();
        let Poll::Ready(next) = polled else { return false };
        self.publish(|shared| match next.transpose() {
            Some(next) => shared.push(next),
            None => shared.ended = true,
        });
        true
    }

    fn settle(&mut self, waker: &Waker) -> bool {
        let mut ctx = PollContext::new(&self.pipeline, waker);
        let Poll::Ready(settled) = settle_all(self.input.as_list(), &mut ctx) else { return false };
        self.publish(|shared| shared.settled = Some(settled));
        true
    }

    /// Changes what the consumer sees, and wakes it.
    fn publish(&self, change: impl FnOnce(&mut Shared)) {
        let consumer = {
            let mut shared = self.shared.lock();
            change(&mut shared);
            shared.consumer.take()
        };
        if let Some(consumer) = consumer {
            consumer.wake();
        }
    }
}
