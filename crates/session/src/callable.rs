//! A prepared step: its feeds and fetches are named once, then it is run many times.

use crate::block::block_on;
use crate::{FetchAs, Fetches, Session, Values};
use graph::Fetch;
use status::Result;
use std::sync::Arc;
use tensor::Tensor;

/// A prepared step of a session. Dropping it releases it on the server, which blocks the calling thread for the time of
/// one call.
pub struct Callable<'a, F> {
    session: &'a Session,
    session_handle: Arc<str>,
    handle: i64,
    fetches: F,
    names: Vec<Fetch>,
}

impl<'a, F: Fetches> Callable<'a, F> {
    pub(crate) fn new(
        session: &'a Session,
        session_handle: Arc<str>,
        handle: i64,
        fetches: F,
        names: Vec<Fetch>,
    ) -> Callable<'a, F> {
        Callable { session, session_handle, handle, fetches, names }
    }

    /// Runs the step with one value for each feed, in order. It blocks the calling thread.
    pub fn call<V>(&self, feeds: Vec<Tensor>) -> Result<V>
    where
        F: FetchAs<V>,
    {
        block_on(self.call_async(feeds))
    }

    /// Runs the step with one value for each feed, in order, on any executor. Dropping the future cancels the step.
    pub async fn call_async<V>(&self, feeds: Vec<Tensor>) -> Result<V>
    where
        F: FetchAs<V>,
    {
        let (tensors, _) = self.session.master().run_callable(&self.session_handle, self.handle, feeds).await?;
        let mut tensors = tensors.into_iter();
        let value = |fetch: &Fetch| match fetch {
            Fetch::Value(_) => tensors.next(),
            Fetch::Target(_) => None,
        };
        self.fetches.answer(&mut Values(self.names.iter().map(value).collect()))
    }
}

impl<F> Drop for Callable<'_, F> {
    fn drop(&mut self) {
        // Closing the session has released its callables already.
        let _ = block_on(self.session.master().release_callable(&self.session_handle, self.handle));
    }
}
