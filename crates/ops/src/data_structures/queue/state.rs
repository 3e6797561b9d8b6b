//! The state of a queue: its elements, and the ops that wait to add or to remove elements.

use super::items::{Element, Items};
use super::spec::{Order, Spec};
use super::tokens;
use crate::data_structures::waiting::{Answer, Line, Waiter};
use membership::{Member, SyncPolicy};
use op::{Resource, StepEnv};
use parking_lot::Mutex;
use status::{Error, Result, cancelled, out_of_range};
use std::sync::{Arc, Weak};
use tensor::Tensor;

/// A queue. Ops of each side are served in the order in which they arrived.
pub(crate) struct Queue {
    pub spec: Arc<Spec>,
    state: Mutex<State>,
}

impl Resource for Queue {
    const TYPE_NAME: &'static str = "N10tensorflow14QueueInterfaceE";
}

struct State {
    closed: bool,
    items: Items,
    enqueues: Line<Put>,
    dequeues: Line<Take>,
    /// Sessions that took tokens of synchronous training, if the task distinguishes sessions.
    members: Vec<Weak<Member>>,
    /// The step of the last token that one of them took.
    last_token: Option<i64>,
}

/// What an op of the entry side does. Closing waits in the same line, behind the elements that came before it.
enum Put {
    Elements { batch: Batch, next: usize },
    Close,
}

/// Elements to be added.
pub(crate) enum Batch {
    One(Element),
    Rows { components: Vec<Tensor>, count: usize },
}

/// What an op of the exit side asks for, and what it has got already.
struct Take {
    left: usize,
    single: bool,
    small_batch: bool,
    taken: Vec<Element>,
    /// The session that takes a token, in a queue of tokens.
    member: Option<Arc<Member>>,
}

/// The progress of an op.
enum Progress {
    Stuck,
    Some,
    Complete(Result<()>),
}

/// An op that is done waiting.
enum Settled {
    Put(Waiter, Result<()>),
    Take(Waiter, Result<Take>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Entry,
    Exit,
}

impl Queue {
    /// An open, empty queue.
    pub fn new(spec: Spec) -> Queue {
        let state = State {
            closed: false,
            items: spec.items(),
            enqueues: Line::default(),
            dequeues: Line::default(),
            members: Vec::new(),
            last_token: None,
        };
        Queue { spec: Arc::new(spec), state: Mutex::new(state) }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.state.lock().items.len()
    }

    /// True if it accepts no more elements.
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Adds elements, now or when there is room.
    pub fn enqueue(self: &Arc<Self>, env: &Arc<StepEnv>, batch: Batch, answer: Answer) {
        self.join(env, Side::Entry, answer, |state, waiter| {
            state.enqueues.join(Put::Elements { batch, next: 0 }, waiter)
        });
    }

    /// Removes one element, now or when there is one.
    pub fn dequeue(self: &Arc<Self>, env: &Arc<StepEnv>, answer: Answer) {
        let member = env.extensions.get::<Arc<Member>>().filter(|_| tokens::is_token_queue(&self.spec)).cloned();
        if let Some(member) = &member {
            self.add_member(member);
        }
        let take = Take { left: 1, single: true, small_batch: false, taken: Vec::new(), member };
        self.join(env, Side::Exit, answer, |state, waiter| state.dequeues.join(take, waiter));
    }

    /// Removes `count` elements as one batch. With `small_batch` it takes fewer if no more can come.
    pub fn dequeue_many(self: &Arc<Self>, env: &Arc<StepEnv>, count: usize, small_batch: bool, answer: Answer) {
        if let Err(error) = self.spec.check_batches() {
            return answer(Err(error));
        }
        if count == 0 {
            return answer(self.spec.batch(Vec::new()));
        }
        let take = Take { left: count, single: false, small_batch, taken: Vec::new(), member: None };
        self.join(env, Side::Exit, answer, |state, waiter| state.dequeues.join(take, waiter));
    }

    /// Closes the queue. Elements that wait for room are still added, unless `cancel_pending` cancels them.
    pub fn close(self: &Arc<Self>, env: &Arc<StepEnv>, cancel_pending: bool, answer: Answer) {
        if !cancel_pending {
            return self.join(env, Side::Entry, answer, |state, waiter| state.enqueues.join(Put::Close, waiter));
        }
        let (cancelled, settled) = {
            let mut state = self.state.lock();
            state.closed = true;
            (state.enqueues.remove_if(|_| true), state.flush(&self.spec))
        };
        for (_, waiter) in cancelled {
            waiter.settle(env, || Err(Side::Entry.cancelled()));
        }
        self.settle(env, settled);
        answer(Ok(Vec::new()));
    }

    fn join(
        self: &Arc<Self>,
        env: &Arc<StepEnv>,
        side: Side,
        answer: Answer,
        join: impl FnOnce(&mut State, Waiter) -> u64,
    ) {
        if env.cancel.is_cancelled() {
            return answer(Err(side.cancelled()));
        }
        let mut state = self.state.lock();
        let number = join(&mut state, Waiter::new(env, answer));
        let mut settled = state.flush(&self.spec);
        let queue = self.clone();
        let give_up = move || queue.give_up(side, number);
        let too_late = match side {
            Side::Entry => state.enqueues.watch(number, give_up).map(|(_, waiter)| waiter),
            Side::Exit => state.dequeues.watch(number, give_up).map(|(take, waiter)| {
                state.items.restore(take.taken);
                waiter
            }),
        };
        if too_late.is_some() {
            settled.extend(state.flush(&self.spec)); // others may wait for what it left
        }
        drop(state);
        self.settle(env, settled);
        if let Some(waiter) = too_late {
            waiter.abandon(side.cancelled());
        }
    }

    /// Withdraws an op whose step was cancelled. Elements it has taken are put back. A pending close stays in line.
    fn give_up(&self, side: Side, number: u64) {
        let (waiter, settled) = {
            let mut state = self.state.lock();
            let waiter = state.give_up(side, number);
            (waiter, state.flush(&self.spec))
        };
        let Some(waiter) = waiter else { return };
        let env = waiter.env().clone();
        waiter.abandon(side.cancelled());
        self.settle(&env, settled);
    }

    /// Notes that a session takes tokens. If it dies, the token it holds goes to another session.
    fn add_member(self: &Arc<Self>, member: &Arc<Member>) {
        {
            let members = &mut self.state.lock().members;
            members.retain(|known| known.strong_count() > 0);
            if members.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(member))) {
                return;
            }
            members.push(Arc::downgrade(member));
        }
        let queue = Arc::downgrade(self);
        member.on_change(move |member| {
            if let Some(queue) = queue.upgrade() {
                queue.member_changed(member);
            }
        });
    }

    /// Handles the death or the return of a session that took tokens. When all sessions have ended, their job is over,
    /// and its remaining tokens must not reach the next job.
    fn member_changed(&self, member: &Member) {
        let held = if member.policy() == SyncPolicy::Shrink { member.reclaim_token() } else { None };
        let settled = {
            let mut state = self.state.lock();
            // In front of the tokens that came since, as if it had never been taken.
            state.items.restore(held.map(|step| tokens::token(&self.spec, step)).into_iter().collect());
            let is_over = state.members.iter().all(|known| known.upgrade().is_none_or(|known| known.has_ended()));
            if let Some(last) = state.last_token.filter(|_| is_over) {
                tokens::drop_until(&mut state.items, last);
            }
            state.flush(&self.spec)
        };
        self.settle(None, settled);
    }

    /// Answers ops. Batches are concatenated here, outside the lock.
    fn settle<'a>(&self, here: impl Into<Option<&'a Arc<StepEnv>>>, settled: Vec<Settled>) {
        let env = here.into();
        for op in settled {
            match op {
                Settled::Put(waiter, result) => waiter.settle(env, || result.map(|()| Vec::new())),
                Settled::Take(waiter, Err(error)) => waiter.settle(env, || Err(error)),
                Settled::Take(waiter, Ok(mut take)) if take.single => {
                    waiter.settle(env, move || Ok(take.taken.pop().unwrap_or_default()));
                }
                Settled::Take(waiter, Ok(take)) => {
                    let spec = self.spec.clone();
                    waiter.settle(env, move || spec.batch(take.taken));
                }
            }
        }
    }
}

impl State {
    /// Moves elements for as long as any can move, and returns the ops that are done.
    fn flush(&mut self, spec: &Spec) -> Vec<Settled> {
        let mut settled = Vec::new();
        while self.let_in(spec, &mut settled) | self.let_out(spec, &mut settled) {}
        settled
    }

    fn let_in(&mut self, spec: &Spec, settled: &mut Vec<Settled>) -> bool {
        let mut moved = false;
        while let Some(put) = self.enqueues.first() {
            match put.advance(&mut self.items, &mut self.closed, spec) {
                Progress::Stuck => return moved,
                Progress::Some => return true,
                Progress::Complete(result) => {
                    moved = true;
                    settled.extend(self.enqueues.pop().map(|(_, waiter)| Settled::Put(waiter, result)));
                }
            }
        }
        moved
    }

    fn let_out(&mut self, spec: &Spec, settled: &mut Vec<Settled>) -> bool {
        if self.dequeues.first().is_some_and(|take| take.member.is_some()) {
            return self.let_tokens_out(spec, settled);
        }
        let mut moved = false;
        let more_comes = !self.enqueues.is_empty();
        while let Some(take) = self.dequeues.first() {
            match take.advance(&mut self.items, self.closed, more_comes, spec) {
                Progress::Stuck => return moved,
                Progress::Some => return true,
                Progress::Complete(result) => {
                    moved = true;
                    let done = |(take, waiter)| Settled::Take(waiter, result.map(|()| take));
                    settled.extend(self.dequeues.pop().map(done));
                }
            }
        }
        moved
    }

    /// Hands tokens to the ops whose sessions can use them, which need not be the first in line.
    fn let_tokens_out(&mut self, spec: &Spec, settled: &mut Vec<Settled>) -> bool {
        tokens::drop_old(&mut self.items);
        let (items, closed, mut results) = (&mut self.items, self.closed, Vec::new());
        let served = self.dequeues.remove_if(|take| {
            let result = take.token(items, closed, spec);
            let served = result.is_some();
            results.extend(result);
            served
        });
        let moved = !served.is_empty();
        let taken = served.iter().rev().filter_map(|(take, _)| take.taken.last());
        self.last_token = taken.filter_map(tokens::step_of).next().or(self.last_token);
        let done = served.into_iter().zip(results);
        settled.extend(done.map(|((take, waiter), result)| Settled::Take(waiter, result.map(|()| take))));
        moved
    }

    fn give_up(&mut self, side: Side, number: u64) -> Option<Waiter> {
        if side == Side::Exit {
            let (take, waiter) = self.dequeues.remove(number)?;
            self.items.restore(take.taken);
            return Some(waiter);
        }
        match self.enqueues.find(number)? {
            (Put::Close, waiter) => waiter.leave(),
            _ => self.enqueues.remove(number).map(|(_, waiter)| waiter),
        }
    }
}

impl Put {
    fn advance(&mut self, items: &mut Items, closed: &mut bool, spec: &Spec) -> Progress {
        let (batch, next) = match self {
            Put::Close if *closed => {
                return Progress::Complete(Err(cancelled!("Queue '{}' is already closed.", spec.name)));
            }
            Put::Close => {
                *closed = true;
                return Progress::Complete(Ok(()));
            }
            Put::Elements { batch, next } => (batch, next),
        };
        if *closed {
            return Progress::Complete(Err(cancelled!("{} '{}' is closed.", spec.kind(), spec.name)));
        }
        let mut progress = Progress::Stuck;
        while items.len() < spec.capacity {
            let element = match batch.element(*next, spec) {
                Ok(element) => element,
                Err(error) => return Progress::Complete(Err(error)),
            };
            items.push(element);
            *next += 1;
            progress = Progress::Some;
            if *next >= batch.len() {
                return Progress::Complete(Ok(()));
            }
        }
        progress
    }
}

impl Batch {
    fn len(&self) -> usize {
        match self {
            Batch::One(_) => 1,
            Batch::Rows { count, .. } => *count,
        }
    }

    fn element(&mut self, index: usize, spec: &Spec) -> Result<Element> {
        let element = match self {
            Batch::One(element) => std::mem::take(element),
            Batch::Rows { components, .. } => spec.rows(components, index)?,
        };
        spec.check_priority(&element)?;
        Ok(element)
    }
}

impl Take {
    /// Takes a token of synchronous training, or returns none if the op has to wait.
    fn token(&mut self, items: &mut Items, closed: bool, spec: &Spec) -> Option<Result<()>> {
        let token = match &self.member {
            Some(member) => tokens::take(items, member),
            None => items.pop(),
        };
        match token {
            Some(token) => {
                self.taken.push(token);
                Some(Ok(()))
            }
            None => closed.then(|| Err(self.too_few(items.len(), spec))),
        }
    }

    fn advance(&mut self, items: &mut Items, closed: bool, more_comes: bool, spec: &Spec) -> Progress {
        let size = items.len();
        if closed && size < self.left {
            items.restore(std::mem::take(&mut self.taken));
            if self.small_batch && items.len() > 0 {
                self.left = items.len();
            } else if self.small_batch && more_comes {
                return Progress::Some;
            } else {
                return Progress::Complete(Err(self.too_few(size, spec)));
            }
        }
        // A batch of sorted elements is sorted as a whole, so it leaves as a whole.
        if matches!(spec.order, Order::Sorted) && items.len() < self.left {
            return Progress::Stuck;
        }
        let kept = if closed { 0 } else { spec.min_after_dequeue() };
        let mut progress = Progress::Stuck;
        while items.len() > kept {
            self.taken.extend(items.pop());
            self.left -= 1;
            progress = Progress::Some;
            if self.left == 0 {
                return Progress::Complete(Ok(()));
            }
        }
        progress
    }

    fn too_few(&self, size: usize, spec: &Spec) -> Error {
        out_of_range!(
            "{} '{}' is closed and has insufficient elements (requested {}, current size {size})",
            spec.kind(),
            spec.name,
            self.left
        )
    }
}

impl Side {
    fn cancelled(self) -> Error {
        match self {
            Side::Entry => cancelled!("Enqueue operation was cancelled"),
            Side::Exit => cancelled!("Dequeue operation was cancelled"),
        }
    }
}
