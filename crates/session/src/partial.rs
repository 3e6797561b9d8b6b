//! A step run piece by piece.

use crate::{Feeds, FetchAs, RunOptions, Session};
use status::Result;

/// A step that was announced: each of its feeds is given once and each of its fetches taken once, in as many
/// pieces as the caller likes.
pub struct PartialRun<'a> {
    session: &'a Session,
    handle: String,
}

impl<'a> PartialRun<'a> {
    pub(crate) fn new(session: &'a Session, handle: String) -> PartialRun<'a> {
        PartialRun { session, handle }
    }

    /// Runs a piece of the step without feeds.
    pub fn run<V>(&self, fetches: impl FetchAs<V>) -> Result<V> {
        self.run_with(fetches, Feeds::new())
    }

    /// Runs a piece of the step.
    pub fn run_with<V>(&self, fetches: impl FetchAs<V>, feeds: Feeds) -> Result<V> {
        let mut asked = Vec::new();
        fetches.ask(&mut asked);
        let (mut values, _) = self.session.step(&asked, feeds, RunOptions::default(), Some(self.handle.clone()))?;
        fetches.answer(&mut values)
    }
}
