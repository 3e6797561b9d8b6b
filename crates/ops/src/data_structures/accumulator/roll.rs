//! Whose gradients an accumulator holds, whether they are enough, and how many came.

use op::{Home, Member, SyncPolicy, Variable};
use status::Result;
use std::sync::Arc;

/// Who has brought gradients, ever and since the last were taken. Empty if this task does not tell sessions apart.
#[derive(Default)]
pub(crate) struct Roll {
    members: Vec<Arc<Member>>,
    given: Vec<Arc<Member>>,
}

impl Roll {
    /// Adds a member; false if it was there. It takes the place of one that was lost with the same task. When all
    /// are lost their job is over, and the next one counts anew.
    pub fn enter(&mut self, member: &Arc<Member>) -> bool {
        if has(&self.members, member) {
            return false;
        }
        if !self.members.iter().any(|known| known.is_alive()) {
            self.members.clear();
        }
        self.members.retain(|known| known.is_alive() || known.task() != member.task());
        self.members.push(member.clone());
        true
    }

    /// Whether a member has given a gradient since the last were taken.
    pub fn has_given(&self, member: &Arc<Member>) -> bool {
        has(&self.given, member)
    }

    /// A member gives a gradient.
    pub fn give(&mut self, member: &Arc<Member>) {
        self.given.push(member.clone());
    }

    /// The gradients were taken.
    pub fn start_anew(&mut self) {
        self.given.clear();
    }

    /// Whether the gradients are enough for somebody who requires so many, when there are `count` of them.
    pub fn suffices(&self, required: usize, count: usize) -> bool {
        let Some(policy) = self.members.first().map(|member| member.policy()) else { return count >= required };
        if self.given.len() >= required {
            return true;
        }
        policy == SyncPolicy::Shrink && alive(&self.given) >= self.left_of(required)
    }

    /// How many of those who are still there must have given: one fewer for each that was lost, but all that are
    /// required while there are as many.
    fn left_of(&self, required: usize) -> usize {
        let alive = alive(&self.members);
        let lost = self.members.len() - alive;
        required.saturating_sub(lost).max(required.min(alive)).max(1)
    }
}

fn has(members: &[Arc<Member>], member: &Arc<Member>) -> bool {
    members.iter().any(|known| Arc::ptr_eq(known, member))
}

fn alive(members: &[Arc<Member>]) -> usize {
    members.iter().filter(|member| member.is_alive()).count()
}

/// What became of a gradient.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    /// It is part of the sum.
    Accepted,
    /// It is of an earlier step.
    Stale,
    /// Its session has given one already.
    Dropped,
}

/// How many gradients met each fate, as variables that clients can read: `<accumulator>/accepted`, `…/stale` and
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

    /// The counts, in the order of fates.
    pub fn counts(&self) -> [i64; 3] {
        self.0.each_ref().map(|counter| counter.counted())
    }

    /// Counts a gradient.
    pub fn count(&self, fate: Fate) {
        self.0[fate as usize].count(1);
    }
}
