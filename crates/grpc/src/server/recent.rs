//! Requests seen lately: a call that the network delivers twice is run once.

use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use status::{Result, aborted};
use std::collections::VecDeque;

/// As many as TensorFlow remembers.
pub(crate) const REMEMBERED: usize = 100_000;

/// The numbers of the last requests; zero means that the caller gave none.
#[derive(Default)]
pub(crate) struct Recent {
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

impl Recent {
    /// Notes a request; an error if it was here before.
    pub fn check(&self, id: i64, method: &str, describe: impl FnOnce() -> String) -> Result<()> {
        if id == 0 || self.seen.lock().is_new(id) {
            return Ok(());
        }
        Err(aborted!("The same {method} request was received twice. {}", describe()))
    }
}
