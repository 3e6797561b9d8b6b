//! Reads values at the end of training.

use crate::monitored::SessionRunHook;
use graph::{Fetch, Fetchable};
use session::{Feeds, FromTensor, Session};
use status::{Result, failed_precondition, invalid};
use tensor::Tensor;

/// Reads values after the last step. Keep a handle (`Arc<Mutex<FinalOps>>`) to get them.
pub struct FinalOps {
    fetches: Vec<Fetch>,
    feeds: Feeds,
    values: Option<Vec<Tensor>>,
}

impl FinalOps {
    /// Reads these outputs.
    pub fn new<'a, F: Fetchable + 'a>(fetches: impl IntoIterator<Item = &'a F>) -> FinalOps {
        let fetches = fetches.into_iter().map(Fetchable::fetch).collect();
        FinalOps { fetches, feeds: Feeds::new(), values: None }
    }

    /// Sets the feeds.
    pub fn feeds(mut self, feeds: Feeds) -> FinalOps {
        self.feeds = feeds;
        self
    }

    /// One of the values; an error before training has ended.
    pub fn value<T: FromTensor>(&self, place: usize) -> Result<T> {
        let values = self.values.as_ref().ok_or_else(|| failed_precondition!("training has not ended"))?;
        let value = values.get(place);
        T::from_tensor(
            value
                .ok_or_else(|| invalid!("value {place} is out of range; the hook has {} values", values.len()))?
                .clone(),
        )
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
