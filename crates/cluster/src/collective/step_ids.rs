//! The numbers of steps with collective operations. All members of a group run an operation in steps of the same number:
//! the leader chooses the first one for each graph, and every task counts on from there.

use crate::ids;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// The steps by the key of their graph.
#[derive(Default)]
pub(crate) struct StepIds {
    sequences: Mutex<FxHashMap<i64, Sequence>>,
}

#[derive(Clone, Copy, Default)]
struct Sequence {
    next: Option<u64>,
    /// The last step that failed.
    failed: Option<u64>,
}

/// The bits of a step's number.
const MASK: u64 = (1 << 57) - 1;

impl StepIds {
    /// The next step of a graph, as the leader chooses it.
    pub fn choose(&self, graph_key: i64) -> u64 {
        *self.sequences.lock().entry(graph_key).or_default().next.get_or_insert_with(ids::step_id)
    }

    /// The next step of a graph, if it is known.
    pub fn next(&self, graph_key: i64) -> Option<u64> {
        self.sequences.lock().get(&graph_key)?.next
    }

    /// Whether a step of a graph failed, and none after it has begun.
    pub fn has_failed(&self, graph_key: i64, step_id: u64) -> bool {
        self.sequences.lock().get(&graph_key).is_some_and(|sequence| sequence.failed == Some(step_id))
    }

    /// Sets the next step, as the leader has answered.
    pub fn set(&self, graph_key: i64, step_id: u64) {
        self.sequences.lock().entry(graph_key).or_default().next = Some(step_id);
    }

    /// A step has succeeded, on all tasks.
    pub fn succeeded(&self, graph_key: i64, step_id: u64) {
        let mut sequences = self.sequences.lock();
        let sequence = sequences.entry(graph_key).or_default();
        if sequence.next == Some(step_id) {
            sequence.next = Some((step_id + 1) & MASK);
        }
    }

    /// A step has failed. Other tasks may have run a part of it, so its number is not used again if that can be avoided:
    /// the leader counts on, and the others ask it.
    pub fn failed(&self, graph_key: i64, step_id: u64, is_leader: bool) {
        let mut sequences = self.sequences.lock();
        let sequence = sequences.entry(graph_key).or_default();
        if sequence.next == Some(step_id) {
            let next = is_leader.then_some((step_id + 1) & MASK);
            *sequence = Sequence { next, failed: Some(step_id) };
        }
    }
}
