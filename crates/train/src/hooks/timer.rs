//! When something is due again: after so many steps, or so much time.

use std::time::{Duration, Instant};

/// How often something is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Every {
    /// After this many steps.
    Steps(i64),
    /// After this much time.
    Time(Duration),
}

/// Says when something is due again.
#[derive(Clone, Debug)]
pub struct Timer {
    every: Every,
    last: Option<(i64, Instant)>,
}

impl Timer {
    /// Due at once.
    pub fn new(every: Every) -> Timer {
        Timer { every, last: None }
    }

    /// Whether it is due at this step; never twice at the same.
    pub fn is_due(&self, step: i64) -> bool {
        self.is_due_at(step, Instant::now())
    }

    pub(crate) fn is_due_at(&self, step: i64, now: Instant) -> bool {
        match (self.last, self.every) {
            (None, _) => true,
            (Some((last, _)), _) if last == step => false,
            (Some((_, time)), Every::Time(every)) => now.saturating_duration_since(time) >= every,
            (Some((last, _)), Every::Steps(every)) => step >= last.saturating_add(every),
        }
    }

    /// It was done at this step; gives how many steps and how much time passed since the last time.
    pub fn done(&mut self, step: i64) -> Option<(i64, Duration)> {
        self.done_at(step, Instant::now())
    }

    pub(crate) fn done_at(&mut self, step: i64, now: Instant) -> Option<(i64, Duration)> {
        let last = self.last.replace((step, now))?;
        Some((step - last.0, now.saturating_duration_since(last.1)))
    }

    /// The step at which it was done last.
    pub fn last_step(&self) -> Option<i64> {
        self.last.map(|(step, _)| step)
    }

    /// Due at once again.
    pub fn reset(&mut self) {
        self.last = None;
    }
}
