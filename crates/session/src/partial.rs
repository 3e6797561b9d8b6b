//! Partial runs: steps that are run in several parts.

use crate::block::block_on;
use crate::{Feeds, FetchAs, RunOptions, Session};
use status::Result;

/// A step that was announced with [`Session::partial_run`]. Each of its feeds is given once and each of its fetches is
/// fetched once, in as many parts as the caller likes.
pub struct PartialRun<'a> {
    session: &'a Session,
    handle: String,
}

impl<'a> PartialRun<'a> {
    pub(crate) fn new(session: &'a Session, handle: String) -> PartialRun<'a> {
        PartialRun { session, handle }
    }

    /// Runs a part of the step without feeds. It blocks the calling thread.
    pub fn run<V>(&self, fetches: impl FetchAs<V>) -> Result<V> {
        self.run_with(fetches, Feeds::new())
    }

    /// Runs a part of the step with feeds. It blocks the calling thread.
    pub fn run_with<V>(&self, fetches: impl FetchAs<V>, feeds: Feeds) -> Result<V> {
        block_on(self.run_with_async(fetches, feeds))
    }

    /// Runs a part of the step with feeds, on any executor. Dropping the future cancels the whole step.
    pub async fn run_with_async<V>(&self, fetches: impl FetchAs<V>, feeds: Feeds) -> Result<V> {
        let mut names = Vec::new();
        fetches.ask(&mut names);
        let (mut values, _) =
            self.session.step(&names, feeds, RunOptions::default(), Some(self.handle.clone())).await?;
        fetches.answer(&mut values)
    }
}
