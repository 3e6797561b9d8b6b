//! A prepared step: what it takes and gives is said once, then it is called.

use crate::link::Link;
use crate::{FetchAs, Fetches, Values};
use graph::Fetch;
use status::Result;
use std::time::Duration;
use tensor::Tensor;

/// A prepared step. Dropping it forgets it on the server.
pub struct Callable<'a, F> {
    link: &'a Link,
    session: String,
    handle: i64,
    limit: Option<Duration>,
    fetches: F,
    asked: Vec<Fetch>,
}

impl<'a, F: Fetches> Callable<'a, F> {
    pub(crate) fn new(
        link: &'a Link,
        session: String,
        handle: i64,
        limit: Option<Duration>,
        fetches: F,
        asked: Vec<Fetch>,
    ) -> Callable<'a, F> {
        Callable { link, session, handle, limit, fetches, asked }
    }

    /// Runs the step with one value for each feed, in order.
    pub fn call<V>(&self, feeds: Vec<Tensor>) -> Result<V>
    where
        F: FetchAs<V>,
    {
        let (tensors, _) = self.link.run_callable(&self.session, self.handle, feeds, self.limit)?;
        let mut tensors = tensors.into_iter();
        let value = |fetch: &Fetch| match fetch {
            Fetch::Value(_) => tensors.next(),
            Fetch::Target(_) => None,
        };
        self.fetches.answer(&mut Values(self.asked.iter().map(value).collect()))
    }
}

impl<F> Drop for Callable<'_, F> {
    fn drop(&mut self) {
        // The session may be closed already, and the callable with it.
        let _ = self.link.release_callable(&self.session, self.handle);
    }
}
