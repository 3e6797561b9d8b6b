//! Runs a dataset to its end inside an op.

use crate::iterators::Running;
use crate::{DatasetRef, Element, Pipeline};
use op::{Cancel, CancelToken, Ctx, Done, Home, OnceCallback, Outputs};
use parking_lot::Mutex;
use status::Result;
use std::sync::Arc;

/// Passes each element of a dataset to `step`, and what `finish` makes of the state to `done`. An error, or the end of the
/// step, ends it early.
pub(crate) fn consume<S: Send + 'static>(
    ctx: &Ctx<'_>,
    home: &Home,
    dataset: DatasetRef,
    state: S,
    step: impl FnMut(&mut S, Element) -> Result<()> + Send + 'static,
    finish: impl FnOnce(S) -> Result<Outputs> + Send + 'static,
    done: Done,
) {
    let pipeline = Pipeline::of(home, ctx.env, &dataset);
    let running = match pipeline.and_then(|pipeline| Running::new(pipeline, dataset)) {
        Ok(running) => running,
        Err(error) => return done(Err(error)),
    };
    let job = Job { running, state, step: Box::new(step), finish: Box::new(finish), done, registered: None };
    let consumer = Arc::new(Consumer { job: Mutex::new(Some(job)), withdraw: Mutex::default() });
    let on_cancel = Arc::downgrade(&consumer);
    let cancel = ctx.env.cancel.clone();
    let registered = cancel.register(move |reason| {
        if let Some(consumer) = on_cancel.upgrade() {
            consumer.end(Err(reason.clone()));
        }
    });
    match registered {
        Ok(token) => {
            if let Some(job) = &mut *consumer.job.lock() {
                job.registered = Some((cancel, token));
            }
            consumer.request();
        }
        Err(reason) => consumer.end(Err(reason)),
    }
}

/// What remains to be done; there is none after the end.
struct Consumer<S> {
    job: Mutex<Option<Job<S>>>,
    /// Withdraws the request for the next element.
    withdraw: Mutex<Option<OnceCallback>>,
}

struct Job<S> {
    running: Arc<Running>,
    state: S,
    step: Box<dyn FnMut(&mut S, Element) -> Result<()> + Send>,
    finish: Box<dyn FnOnce(S) -> Result<Outputs> + Send>,
    done: Done,
    /// What is registered for the end of the step.
    registered: Option<(Arc<Cancel>, CancelToken)>,
}

impl<S: Send + 'static> Consumer<S> {
    fn request(self: &Arc<Self>) {
        let running = self.job.lock().as_ref().map(|job| job.running.clone());
        if let Some(running) = running {
            let consumer = self.clone();
            let withdraw = running.next(Box::new(move |next| consumer.take(next)));
            *self.withdraw.lock() = Some(withdraw);
        }
    }

    fn take(self: &Arc<Self>, next: Result<Option<Element>>) {
        let stepped = match next {
            Ok(Some(element)) => {
                let mut job = self.job.lock();
                job.as_mut().map_or(Ok(true), |job| (job.step)(&mut job.state, element).map(|()| true))
            }
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        match stepped {
            Ok(true) => self.request(),
            Ok(false) => self.end(Ok(())),
            Err(error) => self.end(Err(error)),
        }
    }

    fn end(&self, result: Result<()>) {
        let job = self.job.lock().take();
        let withdraw = self.withdraw.lock().take();
        if let Some(Job { running, state, finish, done, registered, .. }) = job {
            if let Some((cancel, token)) = registered {
                cancel.deregister(token);
            }
            if let Some(withdraw) = withdraw.filter(|_| result.is_err()) {
                withdraw.run();
            }
            drop(running);
            done(result.and_then(|()| finish(state)));
        }
    }
}
