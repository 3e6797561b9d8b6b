//! The progress of a save or a restore: counted for clients, and logged when it takes long.

use io::bundle::Watch;
use op::{COUNTERS, Resources, Variable};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A save or restore that takes longer than this logs its progress at this interval.
const LONG: Duration = Duration::from_secs(5);

/// The operation, for messages.
#[derive(Clone, Copy)]
pub(super) enum Doing {
    Saving,
    Restoring,
}

impl Doing {
    /// Logs the progress of the files of `prefix`.
    pub fn watch(self, resources: &Resources, prefix: &str) -> Watch {
        let (counter, verb) = match self {
            Doing::Saving => ("bytes_saved", "saving"),
            Doing::Restoring => ("bytes_restored", "restoring"),
        };
        let counter: Option<Arc<Variable>> = resources.get(COUNTERS, counter);
        let (pace, prefix) = (Mutex::new(Pace::new(Instant::now())), prefix.to_string());
        Arc::new(move |bytes| {
            if let Some(counter) = &counter {
                counter.count(bytes as usize);
            }
            if let Some(done) = pace.lock().moved(bytes, Instant::now()) {
                tracing::info!("{verb} {prefix}: {:.1} MB so far", done as f64 / 1e6);
            }
        })
    }
}

/// Decides when progress is logged.
pub(crate) struct Pace {
    done: u64,
    said: Instant,
}

impl Pace {
    pub fn new(now: Instant) -> Pace {
        Pace { done: 0, said: now }
    }

    /// Adds bytes that were moved; returns the total if it is to be logged now.
    pub fn moved(&mut self, bytes: u64, now: Instant) -> Option<u64> {
        self.done += bytes;
        if now.saturating_duration_since(self.said) < LONG {
            return None;
        }
        self.said = now;
        Some(self.done)
    }
}
