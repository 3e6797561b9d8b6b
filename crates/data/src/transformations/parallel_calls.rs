//! Calls of a function for several elements at once.

use crate::budget::{STAGE_BYTES, Share, Sizing, cost_of};
use crate::function::Call;
use crate::{Element, Pipeline, PollContext};
use status::{Error, Result, invalid};
use std::collections::VecDeque;
use std::task::{Poll, ready};

/// How many calls are in flight at most, whatever the client asks for.
const MOST_CALLS: usize = 1 << 14;
/// How many calls are in flight at first, if the number is left to us.
const FIRST_CALLS: usize = 2;

/// The number of calls in an input `num_parallel_calls`; none if it is left to us.
pub(crate) fn parallel_calls(number: i64) -> Result<Option<usize>> {
    match usize::try_from(number) {
        Ok(number) if number > 0 => Ok(Some(number.min(MOST_CALLS))),
        _ if number == -1 => Ok(None),
        _ => Err(invalid!("num_parallel_calls must be greater than zero.")),
    }
}

/// Calls in flight, each with what belongs to it, in the order of their elements.
pub(crate) struct ParallelCalls<K> {
    calls: VecDeque<(K, Outcome)>,
    limit: usize,
    /// The limit grows to this number while the consumer has to wait.
    most: usize,
    keeps_order: bool,
    share: Share,
    /// What the last result costs: an estimate for those of the calls in flight.
    cost: usize,
}

enum Outcome {
    Running(Call),
    Ended(Result<Element>),
}

impl<K> ParallelCalls<K> {
    /// No calls yet; up to `limit` at once, or as many as the consumer needs and the pipeline allows.
    pub fn new(pipeline: &Pipeline, limit: Option<usize>, keeps_order: bool) -> ParallelCalls<K> {
        let most = limit.unwrap_or_else(|| pipeline.parallelism());
        let sizing = if limit.is_some() { Sizing::Given } else { Sizing::Chosen };
        let grows = sizing == Sizing::Chosen && pipeline.options().autotune;
        ParallelCalls {
            calls: VecDeque::new(),
            limit: if grows { most.min(FIRST_CALLS) } else { most },
            most,
            keeps_order,
            share: pipeline.budget().share(sizing, STAGE_BYTES),
            cost: 0,
        }
    }

    /// True if another call may begin.
    pub fn has_room(&self) -> bool {
        self.calls.is_empty() || self.calls.len() < self.limit && !self.share.is_full()
    }

    /// True if there are no calls.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds a call that has begun.
    pub fn push(&mut self, key: K, call: Call) {
        self.calls.push_back((key, Outcome::Running(call)));
        self.account();
    }

    /// Adds a result without a call.
    pub fn push_ended(&mut self, key: K, result: Result<Element>) {
        self.calls.push_back((key, Outcome::Ended(result)));
        self.account();
    }

    fn account(&mut self) {
        self.share.set(self.calls.len().saturating_mul(self.cost));
    }

    /// Removes the result of a call that has ended.
    fn take(&mut self, index: usize) -> Option<(K, Result<Element>)> {
        let (key, Outcome::Ended(result)) = self.calls.remove(index)? else { return None };
        self.cost = cost_of(&result);
        self.account();
        Some((key, result))
    }

    /// The consumer has to wait: more calls at once would have helped.
    fn grow(&mut self) {
        if self.limit < self.most && self.calls.len() >= self.limit && !self.share.is_full() {
            self.limit = self.limit.saturating_mul(2).min(self.most);
        }
    }

    /// Takes the next result: the first one, or any if the order is free. `describe` adds to the errors of calls. There must
    /// be a call.
    pub fn poll_next(
        &mut self,
        ctx: &PollContext<'_>,
        describe: &dyn Fn(Error) -> Error,
    ) -> Poll<Option<(K, Result<Element>)>> {
        let candidates = if self.keeps_order { 1 } else { self.calls.len() };
        for index in 0..candidates.min(self.calls.len()) {
            if let Poll::Ready(()) = self.poll_ended(ctx, index, describe) {
                return Poll::Ready(self.take(index));
            }
        }
        if self.calls.is_empty() {
            return Poll::Ready(None);
        }
        self.grow();
        Poll::Pending
    }

    /// Waits until all calls have ended.
    pub fn poll_all(&mut self, ctx: &PollContext<'_>, describe: &dyn Fn(Error) -> Error) -> Poll<()> {
        for index in 0..self.calls.len() {
            ready!(self.poll_ended(ctx, index, describe));
        }
        Poll::Ready(())
    }

    fn poll_ended(&mut self, ctx: &PollContext<'_>, index: usize, describe: &dyn Fn(Error) -> Error) -> Poll<()> {
        let Some((_, outcome)) = self.calls.get_mut(index) else { return Poll::Ready(()) };
        if let Outcome::Running(call) = outcome {
            *outcome = Outcome::Ended(ready!(call.poll(ctx)).map_err(describe));
        }
        Poll::Ready(())
    }

    /// The results of all calls. They must have ended.
    pub fn results(&self) -> impl Iterator<Item = (&K, &Result<Element>)> {
        self.calls.iter().filter_map(|(key, outcome)| match outcome {
            Outcome::Ended(result) => Some((key, result)),
            Outcome::Running(_) => None,
        })
    }

    /// The number of results.
    pub fn len(&self) -> usize {
        self.calls.len()
    }
}
