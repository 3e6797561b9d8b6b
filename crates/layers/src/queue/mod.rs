//! Queues: elements of several components that are stored on a device, between steps and between sessions.

mod builder;

pub use builder::QueueBuilder;

use builder::Order;
use graph::{AttrList, AttrValue, Graph, Node, OpBuilder, Output, Scope};
use ops::array::ensure_shape;
use ops::raw;
use tensor::{DType, PartialShape};

/// A queue. Cloning it is cheap. Its ops are created in its scope and on its device.
#[derive(Clone)]
pub struct Queue {
    handle: Output,
    types: Vec<DType>,
    /// The shapes of the components; empty if elements may have any shape.
    shapes: Vec<PartialShape>,
}

impl Queue {
    /// A queue in first-in, first-out order, whose elements have one component for each type.
    pub fn fifo(scope: &Scope, types: &[DType]) -> QueueBuilder {
        QueueBuilder::new(scope, Order::Fifo, "fifo_queue", types)
    }

    /// A queue in random order, which keeps at least `min_after_dequeue` elements until it is closed.
    pub fn random_shuffle(scope: &Scope, types: &[DType], min_after_dequeue: i64) -> QueueBuilder {
        QueueBuilder::new(scope, Order::Random { min_after_dequeue }, "random_shuffle_queue", types)
    }

    /// As [`Queue::fifo`]. Shapes may have unknown dimensions; the elements of a batch are padded to the same size.
    pub fn padding_fifo(scope: &Scope, types: &[DType], shapes: &[PartialShape]) -> QueueBuilder {
        QueueBuilder::new(scope, Order::PaddingFifo, "padding_fifo_queue", types).shapes(shapes)
    }

    /// A queue whose elements begin with an int64 priority; the lowest is first.
    pub fn priority(scope: &Scope, types: &[DType], shapes: &[PartialShape]) -> QueueBuilder {
        QueueBuilder::new(scope, Order::Priority, "priority_queue", types).shapes(shapes)
    }

    /// The handle.
    pub fn handle(&self) -> &Output {
        &self.handle
    }

    /// The name of its node.
    pub fn name(&self) -> String {
        self.handle.node().name()
    }

    /// The types of the components.
    pub fn types(&self) -> &[DType] {
        &self.types
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        self.handle.scope().graph()
    }

    /// The same queue, whose ops are created in `scope`.
    pub fn seen_from(&self, scope: &Scope) -> Queue {
        Queue { handle: self.handle.seen_from(scope), ..self.clone() }
    }

    /// Adds one element, once there is room.
    pub fn enqueue(&self, components: &[Output]) -> Node {
        self.named(raw::queue_enqueue_v2(&self.near(), components), "_enqueue").node()
    }

    /// Adds each row of `components` as an element, once there is room.
    pub fn enqueue_many(&self, components: &[Output]) -> Node {
        self.named(raw::queue_enqueue_many_v2(&self.near(), components), "_EnqueueMany").node()
    }

    /// Removes one element, once there is one; `OutOfRange` if the queue is closed and empty.
    pub fn dequeue(&self) -> Vec<Output> {
        let op = raw::queue_dequeue_v2(&self.near(), &self.types);
        self.outputs(&self.named(op, "_Dequeue").node(), None)
    }

    /// Removes `n` elements as one batch, once there are as many.
    pub fn dequeue_many(&self, n: &Output) -> Vec<Output> {
        let op = raw::queue_dequeue_many_v2(&self.near(), n, &self.types);
        let node = self.named(op, "_DequeueMany").node();
        self.outputs(&node, Some(n.constant().and_then(|n| n.to_scalar::<i32>().ok()).map_or(-1, i64::from)))
    }

    /// As [`Queue::dequeue_many`], but gives fewer elements when the queue is closed.
    pub fn dequeue_up_to(&self, n: &Output) -> Vec<Output> {
        let op = raw::queue_dequeue_up_to_v2(&self.near(), n, &self.types);
        self.outputs(&self.named(op, "_DequeueUpTo").node(), Some(-1))
    }

    /// Closes the queue for new elements. Enqueue ops that wait still succeed, or fail if `cancel_pending_enqueues`.
    pub fn close(&self, cancel_pending_enqueues: bool) -> Node {
        let op = self.named(raw::queue_close_v2(&self.near()), "_Close");
        op.attr("cancel_pending_enqueues", cancel_pending_enqueues).node()
    }

    /// The number of elements.
    pub fn size(&self) -> Output {
        self.named(raw::queue_size_v2(&self.near()), "_Size").output()
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> Output {
        self.named(raw::queue_is_closed_v2(&self.near()), "_Is_Closed").output()
    }

    /// The handle, from which ops are built on the device of the queue.
    fn near(&self) -> Output {
        self.handle.seen_from(&self.handle.scope().beside(self.handle.node()))
    }

    /// Names an op after the queue, as TensorFlow does.
    fn named(&self, op: OpBuilder, suffix: &str) -> OpBuilder {
        let name = self.name();
        let own = name.rsplit('/').next().unwrap_or(&name);
        op.named(&format!("{own}{suffix}"))
    }

    /// The components that a node gives, with their shapes; `rows` is the size of a batch, -1 if unknown.
    fn outputs(&self, node: &Node, rows: Option<i64>) -> Vec<Output> {
        let scope = self.handle.scope();
        let component = |i: usize| node.output(i).seen_from(scope);
        if self.shapes.iter().all(|shape| shape.rank().is_none() || shape.rank() == Some(0) && rows.is_none()) {
            return (0..self.types.len()).map(component).collect();
        }
        let shapes = self.shapes.iter().map(|shape| match (rows, shape.dims()) {
            (Some(rows), Some(dims)) => PartialShape::new(&[&[rows], dims].concat()),
            (Some(_), None) => PartialShape::unknown(),
            (None, _) => shape.clone(),
        });
        shapes.enumerate().map(|(i, shape)| ensure_shape(&component(i), shape)).collect()
    }
}

fn shape_list(shapes: &[PartialShape]) -> AttrValue {
    AttrValue::from(AttrList { shapes: shapes.to_vec(), ..AttrList::default() })
}
