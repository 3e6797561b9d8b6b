//! Calls of a function for several elements at once.

use crate::function::Call;
use crate::{Element, Pipeline, PollContext};
use status::{Error, Result, invalid};
use std::collections::VecDeque;
use std::task::{Poll, ready};

/// How many calls are in flight at most, whatever the client asks for.
const MOST_CALLS: usize = 1 << 14;

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
    keeps_order: bool,
}

enum Outcome {
    Running(Call),
    Ended(Result<Element>),
}

impl<K> ParallelCalls<K> {
    /// No calls yet; up to `limit` at once.
    pub fn new(pipeline: &Pipeline, limit: Option<usize>, keeps_order: bool) -> ParallelCalls<K> {
        let limit = limit.unwrap_or_else(|| pipeline.parallelism());
        ParallelCalls { calls: VecDeque::new(), limit, keeps_order }
    }

    /// True if another call may begin.
    pub fn has_room(&self) -> bool {
        self.calls.len() < self.limit
    }

    /// True if there are no calls.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds a call that has begun.
    pub fn push(&mut self, key: K, call: Call) {
        self.calls.push_back((key, Outcome::Running(call)));
    }

    /// Adds a result without a call.
    pub fn push_ended(&mut self, key: K, result: Result<Element>) {
        self.calls.push_back((key, Outcome::Ended(result)));
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
                let ended = self.calls.remove(index);
                return Poll::Ready(ended.and_then(|(key, outcome)| match outcome {
                    Outcome::Ended(result) => Some((key, result)),
                    Outcome::Running(_) => None,
                }));
            }
        }
        if self.calls.is_empty() { Poll::Ready(None) } else { Poll::Pending }
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
