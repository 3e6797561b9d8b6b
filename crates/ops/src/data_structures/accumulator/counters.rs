//! Counters of the gradients that accumulators of synchronous training receive.

use op::{Home, Variable};
use status::Result;
use std::sync::Arc;

/// What happened to a gradient.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    /// It is part of the sum.
    Accepted,
    /// It belongs to an earlier step.
    Stale,
    /// It is the second one of its session.
    Dropped,
}

/// The number of gradients with each outcome, as variables that clients can read: `<accumulator>/accepted`, `…/stale` and
/// `…/dropped`.
pub(crate) struct Counters([Arc<Variable>; 3]);

impl Counters {
    /// The counters of the accumulator of this name.
    pub fn of(home: &Home, container: &str, accumulator: &str) -> Result<Counters> {
        let counter = |what: &str| {
            let name = format!("{accumulator}/{what}");
            home.resources().get_or_create(container, &name, || Ok(Variable::counter(&name)))
        };
        Ok(Counters([counter("accepted")?, counter("stale")?, counter("dropped")?]))
    }

    /// The counts, in the order of the outcomes.
    pub fn counts(&self) -> [i64; 3] {
        self.0.each_ref().map(|counter| counter.counted())
    }

    /// Counts a gradient.
    pub fn count(&self, outcome: Outcome) {
        self.0[outcome as usize].count(1);
    }
}
