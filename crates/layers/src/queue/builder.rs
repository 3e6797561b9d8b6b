//! Settings of a new queue.

use super::{Queue, shape_list};
use graph::Scope;
use ops::raw;
use tensor::{DType, PartialShape};

/// The settings of a new queue. By default it has no bound and no shapes, and belongs to its session.
pub struct QueueBuilder {
    scope: Scope,
    order: Order,
    name: String,
    shared_name: String,
    capacity: i64,
    types: Vec<DType>,
    shapes: Vec<PartialShape>,
    seed: Option<i64>,
}

/// In which order elements leave a queue.
#[derive(Clone, Copy)]
pub(super) enum Order {
    /// In the order in which they were put in.
    Fifo,
    /// In the same order; the elements of a batch are padded to one shape.
    PaddingFifo,
    /// At random, while more than this number of elements remain.
    Random { min_after_dequeue: i64 },
    /// By their first component, the smallest one first.
    Priority,
}

impl QueueBuilder {
    pub(super) fn new(scope: &Scope, order: Order, name: &str, types: &[DType]) -> QueueBuilder {
        QueueBuilder {
            scope: scope.clone(),
            order,
            name: name.to_string(),
            shared_name: String::new(),
            capacity: -1,
            types: types.to_vec(),
            shapes: Vec::new(),
            seed: None,
        }
    }

    /// Sets the maximum number of elements.
    pub fn capacity(mut self, capacity: i64) -> QueueBuilder {
        self.capacity = capacity;
        self
    }

    /// Sets the shapes of the components. Batches need shapes.
    pub fn shapes(mut self, shapes: &[PartialShape]) -> QueueBuilder {
        self.shapes = shapes.to_vec();
        self
    }

    /// Sets the name of its node.
    pub fn name(mut self, name: &str) -> QueueBuilder {
        self.name = name.to_string();
        self
    }

    /// Sets the name under which all sessions find the same queue on its device.
    pub fn shared_name(mut self, name: &str) -> QueueBuilder {
        self.shared_name = name.to_string();
        self
    }

    /// Sets the seed of a queue with random order.
    pub fn seed(mut self, seed: i64) -> QueueBuilder {
        self.seed = Some(seed);
        self
    }

    /// Adds the node of the queue.
    pub fn build(self) -> Queue {
        let op = match self.order {
            Order::Fifo => raw::fifo_queue_v2(&self.scope, &self.types),
            Order::PaddingFifo => raw::padding_fifo_queue_v2(&self.scope, &self.types),
            Order::Random { min_after_dequeue } => {
                let (seed, seed2) = self.scope.graph().seeds(self.seed);
                let op = raw::random_shuffle_queue_v2(&self.scope, &self.types);
                op.attr("min_after_dequeue", min_after_dequeue).attr("seed", seed).attr("seed2", seed2)
            }
            Order::Priority => {
                raw::priority_queue_v2(&self.scope, &self.shapes).attr("component_types", self.types.clone())
            }
        };
        let op = op.named(&self.name).attr("capacity", self.capacity).attr("shapes", shape_list(&self.shapes));
        let op = op.attr("shared_name", self.shared_name.as_str());
        let (mut types, mut shapes) = (self.types, self.shapes);
        if let Order::Priority = self.order {
            types.insert(0, DType::I64);
            if !shapes.is_empty() {
                shapes.insert(0, PartialShape::scalar());
            }
        }
        Queue { handle: op.output(), types, shapes }
    }
}
