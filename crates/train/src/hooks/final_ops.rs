//! Reads values when training has ended.

use crate::monitored::SessionRunHook;
use graph::{Fetch, Fetchable};
use session::{Feeds, FromTensor, Session};
use status::{Result, failed_precondition, invalid};
use tensor::Tensor;

/// Reads values after the last step. Keep a handle (`Arc<Mutex<FinalOps>>`) to look at them.
pub struct FinalOps {
    fetches: Vec<Fetch>,
    feeds: Feeds,
    values: Option<Vec<Tensor>>,
}

impl FinalOps {
    /// These values.
    pub fn new<'a, F: Fetchable + 'a>(fetches: impl IntoIterator<Item = &'a F>) -> FinalOps {
        let fetches = fetches.into_iter().map(Fetchable::fetch).collect();
        FinalOps { fetches, feeds: Feeds::new(), values: None }
    }

    /// With these feeds.
    pub fn feeds(mut self, feeds: Feeds) -> FinalOps {
        self.feeds = feeds;
        self
    }

    /// One of the values; an error before training has ended.
    pub fn value<T: FromTensor>(&self, place: usize) -> Result<T> {
        let values = self.values.as_ref().ok_or_else(|| failed_precondition!("Training has not ended"))?;
        let value = values.get(place);
        T::from_tensor(value.ok_or_else(|| invalid!("Value {place} of {} was asked for", values.len()))?.clone())
    }
}

impl SessionRunHook for FinalOps {
    fn end(&mut self, session: &Session) -> Result<()> {
        let names: Vec<&str> = self.fetches.iter().map(name).collect();
        self.values = Some(session.run_with(names, self.feeds.clone())?);
        Ok(())
    }
}

fn name(fetch: &Fetch) -> &str {
    match fetch {
        Fetch::Value(name) | Fetch::Target(name) => name,
    }
}
