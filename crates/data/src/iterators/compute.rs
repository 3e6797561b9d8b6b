//! Ops that run a pipeline of their own until they have their answer.

use crate::{Pipeline, PollContext, Task, Work};
use op::{Ctx, Done, OnceCallback, Outputs};
use parking_lot::Mutex;
use status::{Error, Result, internal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Poll, Waker};

/// Something that is polled until it has an answer.
pub trait Compute: Send + 'static {
    /// The answer, once it is there.
    fn poll(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<Outputs>>;
}

/// Polls on the threads of a step until there is an answer, or the step is cancelled.
pub fn compute(ctx: &Ctx<'_>, pipeline: Arc<Pipeline>, work: impl Compute, done: Done) {
    let env = ctx.env.clone();
    let answer: Arc<Mutex<Option<Done>>> = Arc::new(Mutex::new(Some(done)));
    let task = Task::new(
        pipeline.spawn().clone(),
        Computation { pipeline: pipeline.clone(), work: Some(work), answer: answer.clone(), on_end: None },
    );
    let (cancel, held) = (env.cancel.clone(), task.clone());
    let on_cancel = OnceCallback::new(move || {
        if let Some(reason) = cancel.reason() {
            pipeline.cancel().cancel(reason.clone());
            finish(&answer, Err(reason));
        }
        held.start(); // drops the work
    });
    let callback = on_cancel.clone();
    match env.cancel.register(move |_| callback.run()) {
        Err(_) => on_cancel.run(),
        Ok(token) => {
            task.with(|work| {
                work.on_end = Some(Box::new(move || {
                    env.cancel.deregister(token);
                    on_cancel.withdraw();
                }));
            });
            task.start();
        }
    }
}

fn finish(answer: &Mutex<Option<Done>>, result: Result<Outputs>) {
    let done = answer.lock().take();
    if let Some(done) = done {
        done(result);
    }
}

struct Computation<W> {
    pipeline: Arc<Pipeline>,
    /// None when it has ended.
    work: Option<W>,
    answer: Arc<Mutex<Option<Done>>>,
    /// Withdraws what is registered for a cancellation.
    on_end: Option<Box<dyn FnOnce() + Send>>,
}

impl<W: Compute> Work for Computation<W> {
    fn turn(&mut self, waker: &Waker) {
        let Some(work) = &mut self.work else { return };
        let mut ctx = PollContext::new(&self.pipeline, waker);
        let polled = match self.pipeline.cancel().reason() {
            Some(reason) => Poll::Ready(Err(reason)),
            None => catch_unwind(AssertUnwindSafe(|| work.poll(&mut ctx)))
                .unwrap_or_else(|_| Poll::Ready(Err(internal!("The input pipeline failed unexpectedly")))),
        };
        if let Poll::Ready(result) = polled {
            self.end(result);
        }
    }

    fn fail(&mut self, error: Error) {
        self.end(Err(error));
    }
}

impl<W> Computation<W> {
    fn end(&mut self, result: Result<Outputs>) {
        self.work = None;
        if let Some(end) = self.on_end.take() {
            end();
        }
        finish(&self.answer, result);
    }
}
