//! Staging areas: a request that cannot be served waits, and is retried whenever the area changes.

pub(crate) mod map_stage;
pub(crate) mod stage;

use crate::data_structures::named::{Unnamed, place_name};
use crate::data_structures::waiting::{Answer, Line, Waiter, answering};
use op::{Inputs, Kernel, Setup, StepEnv, later};
use parking_lot::Mutex;
use status::{Result, cancelled, exhausted};
use std::sync::Arc;
use tensor::Tensor;

/// The contents of an area, as plain data that never waits.
pub(crate) trait Shelf: Send + Sync + 'static {
    /// The request of an op.
    type Request: Send + 'static;
    /// Serves a request; `None` if it must wait.
    fn serve(&mut self, request: &mut Self::Request) -> Option<Result<Vec<Tensor>>>;
}

/// A shelf and the ops that wait for it.
pub(crate) struct Area<S: Shelf>(Mutex<(S, Line<S::Request>)>);

impl<S: Shelf> Area<S> {
    fn ask(self: &Arc<Self>, env: &Arc<StepEnv>, request: S::Request, answer: Answer) {
        if env.cancel.is_cancelled() {
            return answer(Err(gave_up()));
        }
        let mut guard = self.0.lock();
        let (shelf, line) = &mut *guard;
        let number = line.join(request, Waiter::new(env, answer));
        let served = serve(shelf, line);
        let area = self.clone();
        let too_late = line.watch(number, move || area.give_up(number));
        drop(guard);
        settle(env, served);
        if let Some((_, waiter)) = too_late {
            waiter.abandon(gave_up());
        }
    }

    fn give_up(&self, number: u64) {
        let waiter = self.0.lock().1.remove(number);
        if let Some((_, waiter)) = waiter {
            waiter.abandon(gave_up());
        }
    }
}

type Served = Vec<(Waiter, Result<Vec<Tensor>>)>;

/// Serves all requests that can be served; serving one may enable others.
fn serve<S: Shelf>(shelf: &mut S, line: &mut Line<S::Request>) -> Served {
    let mut served = Vec::new();
    loop {
        let mut results = Vec::new();
        let taken = line.remove_if(|request| {
            let result = shelf.serve(request);
            let done = result.is_some();
            results.extend(result);
            done
        });
        if taken.is_empty() {
            return served;
        }
        served.extend(taken.into_iter().map(|(_, waiter)| waiter).zip(results));
    }
}

fn settle(env: &Arc<StepEnv>, served: Served) {
    for (waiter, result) in served {
        waiter.settle(env, move || result);
    }
}

fn gave_up() -> status::Error {
    cancelled!("Staging operation was cancelled")
}

/// A kernel that sends a request to the area in its attributes; `make` creates the area if it does not exist.
pub(crate) fn request_kernel<S: Shelf>(
    setup: &Setup<'_>,
    make: impl Fn() -> S + Send + Sync + 'static,
    request: impl Fn(&mut Inputs) -> Result<S::Request> + Send + Sync + 'static,
) -> Result<Kernel> {
    let (container, name, _) = place_name(setup, Unnamed::ByNode)?;
    let resources = setup.resources().clone();
    let prepare = move |inputs: &mut Inputs| {
        let make = || Ok(Area(Mutex::new((make(), Line::default()))));
        let area: Arc<Area<S>> = resources.get_or_create(&container, &name, make)?;
        Ok((area, request(inputs)?))
    };
    Ok(later(move |ctx, mut inputs, done| match prepare(&mut inputs) {
        Ok((area, request)) => area.ask(ctx.env, request, answering(done)),
        Err(error) => done(Err(error)),
    }))
}

/// How much an area may hold; zero means no limit.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    capacity: usize,
    bytes: usize,
}

impl Limits {
    /// Reads the attributes of a node.
    pub fn of(setup: &Setup<'_>) -> Result<Limits> {
        let limit = |name: &str| setup.int(name).map(|limit| usize::try_from(limit).unwrap_or(0));
        Ok(Limits { capacity: limit("capacity")?, bytes: limit("memory_limit")? })
    }

    /// True if an element of this many bytes must wait; an error if it can never fit.
    pub fn is_full(&self, elements: usize, held: usize, bytes: usize) -> Result<bool> {
        if self.bytes > 0 && bytes > self.bytes {
            return Err(exhausted!(
                "Attempted to insert tensors with combined size of '{bytes}' bytes into Staging Area with a memory \
                 limit of '{}'.",
                self.bytes
            ));
        }
        let no_room = self.bytes > 0 && held + bytes > self.bytes;
        Ok(no_room || self.capacity > 0 && elements >= self.capacity)
    }
}

/// Bytes of some tensors.
pub(crate) fn bytes_of<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> usize {
    tensors.into_iter().map(Tensor::byte_size).sum()
}
