//! A queue in the making.

use super::{Queue, shape_list};
use graph::Scope;
use tensor::{DType, PartialShape};

/// A queue in the making; without bounds, without shapes, and its session's own, unless said otherwise.
pub struct QueueBuilder {
    scope: Scope,
    op: &'static str,
    name: String,
    shared_name: String,
    capacity: i64,
    types: Vec<DType>,
    shapes: Vec<PartialShape>,
    kept: i64,
    seed: Option<i64>,
}

impl QueueBuilder {
    pub(super) fn new(scope: &Scope, op: &'static str, name: &str, types: &[DType]) -> QueueBuilder {
        QueueBuilder {
            scope: scope.clone(),
            op,
            name: name.to_string(),
            shared_name: String::new(),
            capacity: -1,
            types: types.to_vec(),
            shapes: Vec::new(),
            kept: 0,
            seed: None,
        }
    }

    pub(super) fn kept(mut self, min_after_dequeue: i64) -> QueueBuilder {
        self.kept = min_after_dequeue;
        self
    }

    /// The most elements it holds.
    pub fn capacity(mut self, capacity: i64) -> QueueBuilder {
        self.capacity = capacity;
        self
    }

    /// Shapes of the components: batches can be taken only of elements whose shapes are given.
    pub fn shapes(mut self, shapes: &[PartialShape]) -> QueueBuilder {
        self.shapes = shapes.to_vec();
        self
    }

    /// The name of its node.
    pub fn name(mut self, name: &str) -> QueueBuilder {
        self.name = name.to_string();
        self
    }

    /// The name under which all sessions find the same queue on its device.
    pub fn shared_name(mut self, name: &str) -> QueueBuilder {
        self.shared_name = name.to_string();
        self
    }

    /// The seed of a queue in random order.
    pub fn seed(mut self, seed: i64) -> QueueBuilder {
        self.seed = Some(seed);
        self
    }

    /// Makes it.
    pub fn make(self) -> Queue {
        let op = self.scope.op(self.op).named(&self.name).attr("capacity", self.capacity);
        let op = op.attr("component_types", self.types.clone()).attr("shapes", shape_list(&self.shapes));
        let op = op.attr("shared_name", self.shared_name.as_str());
        let (mut types, mut shapes) = (self.types, self.shapes);
        let op = match self.op {
            "RandomShuffleQueueV2" => {
                let (seed, seed2) = self.scope.graph().seeds(self.seed);
                op.attr("min_after_dequeue", self.kept).attr("seed", seed).attr("seed2", seed2)
            }
            "PriorityQueueV2" => {
                types.insert(0, DType::I64);
                if !shapes.is_empty() {
                    shapes.insert(0, PartialShape::scalar());
                }
                op
            }
            _ => op,
        };
        Queue { handle: op.output(), types, shapes }
    }
}
