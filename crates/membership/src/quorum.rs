//! When an accumulator has gradients of enough members.

use crate::{Member, SyncPolicy};
use std::sync::Arc;

/// The members that send gradients to one accumulator, and those of them that have sent one since the last sum was taken.
/// It has no members on a task that does not distinguish sessions.
#[derive(Default)]
pub struct Quorum {
    members: Vec<Arc<Member>>,
    contributors: Vec<Arc<Member>>,
}

impl Quorum {
    /// Adds a member; false if it is known. It replaces a dead member of the same task. If all known members are dead,
    /// the job they belonged to has ended, and they are removed.
    pub fn join(&mut self, member: &Arc<Member>) -> bool {
        if contains(&self.members, member) {
            return false;
        }
        if !self.members.iter().any(|known| known.is_alive()) {
            self.members.clear();
        }
        self.members.retain(|known| known.is_alive() || known.task() != member.task());
        self.members.push(member.clone());
        true
    }

    /// True if a member has sent a gradient since the last sum was taken.
    pub fn has_gradient_of(&self, member: &Arc<Member>) -> bool {
        contains(&self.contributors, member)
    }

    /// Notes that a gradient of this member was added to the sum.
    pub fn add_gradient(&mut self, member: &Arc<Member>) {
        self.contributors.push(member.clone());
    }

    /// Notes that the sum was taken.
    pub fn reset(&mut self) {
        self.contributors.clear();
    }

    /// True if a sum of `count` gradients satisfies a request for `required` gradients.
    pub fn is_reached(&self, required: usize, count: usize) -> bool {
        let Some(policy) = self.members.first().map(|member| member.policy()) else { return count >= required };
        if self.contributors.len() >= required {
            return true;
        }
        policy == SyncPolicy::Shrink && alive(&self.contributors) >= self.required_of_alive(required)
    }

    /// The number of gradients that members who are alive must have sent: one fewer for each dead member, but never
    /// fewer than `required` while that many members are alive.
    fn required_of_alive(&self, required: usize) -> usize {
        let alive = alive(&self.members);
        let dead = self.members.len() - alive;
        required.saturating_sub(dead).max(required.min(alive)).max(1)
    }
}

fn contains(members: &[Arc<Member>], member: &Arc<Member>) -> bool {
    members.iter().any(|known| Arc::ptr_eq(known, member))
}

fn alive(members: &[Arc<Member>]) -> usize {
    members.iter().filter(|member| member.is_alive()).count()
}
