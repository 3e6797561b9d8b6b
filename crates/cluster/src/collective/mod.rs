//! Collective operations: a group of devices, on one task or several, combine their values.
//!
//! The *leader* of a group, one of the tasks, knows its members (`groups.rs`) and compares what they ask for
//! (`instances.rs`); the other tasks ask it once and remember the answer (`resolve.rs`). A group within one task combines its values in
//! memory (`within_task.rs`). Other groups exchange buffers with TensorFlow's protocol (`ring.rs`, `tree.rs`, `peers.rs`), so
//! that TensorFlow's tasks may be members. All members run an operation in steps with the same number, which the leader
//! chooses (`step_ids.rs`).

pub(crate) mod graph_key;
pub(crate) mod groups;
pub(crate) mod instances;
mod merge;
mod peers;
pub(crate) mod resolve;
mod ring;
pub(crate) mod run;
mod sections;
pub(crate) mod step_ids;
mod tree;
pub(crate) mod within_task;

use crate::Task;
use groups::Groups;
use parking_lot::{Mutex, RwLock};
use step_ids::StepIds;

/// What a task knows of collective operations.
#[derive(Default)]
pub(crate) struct Collective {
    /// The leader that the configuration of the server names.
    leader: RwLock<String>,
    pub groups: Mutex<Groups>,
    pub steps: StepIds,
}

impl Collective {
    /// Names the leader, unless there is none.
    pub fn set_leader(&self, leader: &str) {
        *self.leader.write() = leader.to_string();
    }

    /// The first leader that is named: by the server, or by these others.
    pub fn leader(&self, others: &[&str]) -> Option<Task> {
        let own = self.leader.read();
        let named = std::iter::once(&**own).chain(others.iter().copied()).find(|name| !name.is_empty())?;
        Task::of_device(&graph::DeviceSpec::parse(named).ok()?)
    }
}
