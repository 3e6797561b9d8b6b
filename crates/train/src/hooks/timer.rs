//! Intervals in steps or time.

use std::time::{Duration, Instant};

/// An interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Every {
    /// This many steps.
    Steps(i64),
    /// This much time.
    Time(Duration),
}

/// Tells when an interval is over.
#[derive(Clone, Debug)]
pub struct Timer {
    every: Every,
    last: Option<(i64, Instant)>,
}

impl Timer {
    /// A timer that is due immediately.
    pub fn new(every: Every) -> Timer {
        Timer { every, last: None }
    }

    /// Whether it is due at this step; never twice at the same step.
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

    /// Starts the next interval; gives the steps and the time since the last start.
    pub fn done(&mut self, step: i64) -> Option<(i64, Duration)> {
        self.done_at(step, Instant::now())
    }

    pub(crate) fn done_at(&mut self, step: i64, now: Instant) -> Option<(i64, Duration)> {
        let last = self.last.replace((step, now))?;
        Some((step - last.0, now.saturating_duration_since(last.1)))
    }

    /// The step at which the current interval started.
    pub fn last_step(&self) -> Option<i64> {
        self.last.map(|(step, _)| step)
    }

    /// Makes the timer due immediately.
    pub fn reset(&mut self) {
        self.last = None;
    }
}
