//! Run times of nodes, for traces.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tensor::{DType, Shape};

/// One run of one node.
#[derive(Clone, Debug)]
pub struct NodeStats {
    /// The node.
    pub name: Arc<str>,
    /// Its op.
    pub op: Arc<str>,
    /// The device it ran on.
    pub device: Arc<str>,
    /// When it became ready, in nanoseconds since 1970.
    pub scheduled: u64,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Types and shapes of its outputs.
    pub outputs: Vec<(DType, Shape)>,
    /// Which thread ran it.
    pub thread: u32,
}

/// Collects the run times of nodes in one step.
pub struct Stats {
    origin: (Instant, u64),
    nodes: Mutex<Vec<NodeStats>>,
}

impl Stats {
    /// An empty collection.
    pub fn new() -> Stats {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        Stats { origin: (Instant::now(), wall), nodes: Mutex::default() }
    }

    /// The current time in nanoseconds since 1970; monotonic within a step.
    pub fn now(&self) -> u64 {
        self.origin.1 + self.origin.0.elapsed().as_nanos() as u64
    }

    /// Adds one run of a node.
    pub fn add(&self, node: NodeStats) {
        self.nodes.lock().push(node);
    }

    /// Everything collected, in the order it ended.
    pub fn take(&self) -> Vec<NodeStats> {
        std::mem::take(&mut self.nodes.lock())
    }
}

impl Default for Stats {
    fn default() -> Stats {
        Stats::new()
    }
}
