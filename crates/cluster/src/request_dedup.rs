//! Refuses requests that the network delivers twice.

use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use status::{Result, aborted};
use std::collections::VecDeque;

/// How many requests are remembered, which is TensorFlow's number.
pub(crate) const REMEMBERED: usize = 100_000;

/// The ids of the last requests. An id of zero means that the caller gave none.
#[derive(Default)]
pub struct RequestDedup {
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    ids: FxHashSet<i64>,
    order: VecDeque<i64>,
}

impl Seen {
    fn is_new(&mut self, id: i64) -> bool {
        if !self.ids.insert(id) {
            return false;
        }
        if self.order.len() == REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        self.order.push_back(id);
        true
    }
}

impl RequestDedup {
    /// Remembers a request; an error if it was received before. `describe` prints the request as TensorFlow prints its
    /// message.
    pub fn check(&self, id: i64, method: &str, describe: impl FnOnce() -> String) -> Result<()> {
        if id == 0 || self.seen.lock().is_new(id) {
            return Ok(());
        }
        Err(aborted!("The same {method} request was received twice. {}", describe()))
    }
}
