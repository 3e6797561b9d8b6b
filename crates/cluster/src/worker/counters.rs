//! The counters of a task: steps, bytes received from and sent to other tasks, bytes saved and restored.

use graph::RendezvousKey;
use op::{COUNTERS, Resources, Variable};
use status::Result;
use std::sync::Arc;

/// What a task has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Steps in which it took part and which succeeded.
    pub steps: i64,
    /// Bytes of the tensors that other tasks sent it.
    pub bytes_in: i64,
    /// Bytes of the tensors that it sent to other tasks.
    pub bytes_out: i64,
}

impl TaskCounts {
    /// The names of the counters, in the order of the fields.
    pub const NAMES: [&str; 3] = ["steps", "bytes_in", "bytes_out"];
}

/// The counters of the checkpoint kernels.
const CHECKPOINTS: [&str; 2] = ["bytes_saved", "bytes_restored"];

pub(crate) struct Counters {
    steps: Arc<Variable>,
    bytes_in: Arc<Variable>,
    bytes_out: Arc<Variable>,
    checkpoints: [Arc<Variable>; 2],
}

impl Default for Counters {
    fn default() -> Counters {
        let counter = |name| Arc::new(Variable::counter(name));
        let [steps, bytes_in, bytes_out] = TaskCounts::NAMES.map(counter);
        Counters { steps, bytes_in, bytes_out, checkpoints: CHECKPOINTS.map(counter) }
    }
}

impl Counters {
    /// Makes the counters available to clients and kernels as variables of a device.
    pub fn register(&self, resources: &Resources) -> Result<()> {
        let own = [&self.steps, &self.bytes_in, &self.bytes_out];
        let mut all = own.into_iter().chain(&self.checkpoints);
        all.try_for_each(|counter| resources.create(COUNTERS, counter.name(), counter.clone()))
    }

    pub fn step(&self) {
        self.steps.count(1);
    }

    pub fn received(&self, key: &str, bytes: usize) {
        if !is_of_counter(key) {
            self.bytes_in.count(bytes);
        }
    }

    pub fn sent(&self, key: &str, bytes: usize) {
        if !is_of_counter(key) {
            self.bytes_out.count(bytes);
        }
    }

    pub fn read(&self) -> TaskCounts {
        let (steps, bytes_in, bytes_out) = (self.steps.counted(), self.bytes_in.counted(), self.bytes_out.counted());
        TaskCounts { steps, bytes_in, bytes_out }
    }
}

/// Whether a tensor belongs to a node named `flowgrid/…`, which reads counters. Counting its transfer would make the
/// result depend on which of the counters are read first.
fn is_of_counter(key: &str) -> bool {
    let Ok(key) = RendezvousKey::parse(key) else { return false };
    let edge = key.tensor_name.strip_prefix("edge_").and_then(|edge| edge.split_once('_'));
    let node = edge.map_or(key.tensor_name, |(_, node)| node);
    node.strip_prefix(COUNTERS).is_some_and(|rest| rest.starts_with('/'))
}
