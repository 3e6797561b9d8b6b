//! Ops that wait for a resource, and how they are withdrawn when their step is cancelled.

use op::{CancelToken, Done, StepEnv, Value};
use status::Result;
use std::collections::VecDeque;
use std::sync::Arc;
use tensor::Tensor;

/// Called once, with the tensors that an op waited for.
pub(crate) type Answer = Box<dyn FnOnce(Result<Vec<Tensor>>) + Send>;

/// Passes tensors on as outputs.
pub(crate) fn answering(done: Done) -> Answer {
    Box::new(move |result| done(result.map(|tensors| tensors.into_iter().map(Value::from).collect())))
}

/// An op that waits.
pub(crate) struct Waiter {
    answer: Option<Answer>,
    env: Arc<StepEnv>,
    token: Option<CancelToken>,
}

impl Waiter {
    /// A waiting op whose cancellation is not watched yet.
    pub fn new(env: &Arc<StepEnv>, answer: Answer) -> Waiter {
        Waiter { answer: Some(answer), env: env.clone(), token: None }
    }

    /// Answers the op. The caller must hold no lock, because the continuation may use the resource again. If the op
    /// belongs to another step than `here`, it continues on another thread: this thread is in the middle of its own
    /// step, and a long chain of waiting ops would otherwise recurse.
    pub fn settle<'a>(
        mut self,
        here: impl Into<Option<&'a Arc<StepEnv>>>,
        result: impl FnOnce() -> Result<Vec<Tensor>> + Send + 'static,
    ) {
        if let Some(token) = self.token.take() {
            self.env.cancel.deregister(token);
        }
        let Some(answer) = self.answer.take() else { return };
        match here.into().is_some_and(|here| Arc::ptr_eq(&self.env, here)) {
            true => answer(result()),
            false => (self.env.spawn)(Box::new(move || answer(result()))),
        }
    }

    /// The step it belongs to.
    pub fn env(&self) -> &Arc<StepEnv> {
        &self.env
    }

    /// Answers with an error on this thread: the step of the op is over.
    pub fn abandon(mut self, error: status::Error) {
        if let Some(answer) = self.answer.take() {
            answer(Err(error));
        }
    }

    /// Detaches the answer, so that the op stays in line without anything to answer; none if it was detached before.
    pub fn leave(&mut self) -> Option<Waiter> {
        let answer = self.answer.take()?;
        Some(Waiter { answer: Some(answer), env: self.env.clone(), token: None })
    }
}

/// Ops that wait, first in, first out, each with its request.
pub(crate) struct Line<T> {
    next: u64,
    waiting: VecDeque<(u64, T, Waiter)>,
}

impl<T> Default for Line<T> {
    fn default() -> Line<T> {
        Line { next: 0, waiting: VecDeque::new() }
    }
}

impl<T> Line<T> {
    /// Adds an op at the end, and returns a number that identifies it in this line.
    pub fn join(&mut self, wanted: T, waiter: Waiter) -> u64 {
        self.next += 1;
        self.waiting.push_back((self.next, wanted, waiter));
        self.next
    }

    /// True if no op waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The request of the first op.
    pub fn first(&mut self) -> Option<&mut T> {
        self.waiting.front_mut().map(|(_, wanted, _)| wanted)
    }

    /// Removes the first op.
    pub fn pop(&mut self) -> Option<(T, Waiter)> {
        self.waiting.pop_front().map(|(_, wanted, waiter)| (wanted, waiter))
    }

    /// The op with this number, if it still waits.
    pub fn find(&mut self, number: u64) -> Option<(&mut T, &mut Waiter)> {
        let found = self.waiting.iter_mut().rev().find(|(other, ..)| *other == number);
        found.map(|(_, wanted, waiter)| (wanted, waiter))
    }

    /// Removes the op with this number, if it still waits.
    pub fn remove(&mut self, number: u64) -> Option<(T, Waiter)> {
        let place = self.waiting.iter().position(|(other, ..)| *other == number)?;
        self.waiting.remove(place).map(|(_, wanted, waiter)| (wanted, waiter))
    }

    /// Removes all ops whose requests satisfy `takes`.
    pub fn remove_if(&mut self, mut takes: impl FnMut(&mut T) -> bool) -> Vec<(T, Waiter)> {
        let mut taken = Vec::new();
        for mut entry in std::mem::take(&mut self.waiting) {
            match takes(&mut entry.1) {
                true => taken.push((entry.1, entry.2)),
                false => self.waiting.push_back(entry),
            }
        }
        taken
    }

    /// Calls `give_up` without any lock when the step of the op with this number is cancelled. If the step is
    /// cancelled already, the op is removed and returned.
    pub fn watch(&mut self, number: u64, give_up: impl FnOnce() + Send + 'static) -> Option<(T, Waiter)> {
        let (_, waiter) = self.find(number)?;
        match waiter.env.cancel.register(move |_| give_up()) {
            Ok(token) => {
                waiter.token = Some(token);
                None
            }
            Err(_) => self.remove(number),
        }
    }
}
