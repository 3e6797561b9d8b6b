//! Queues: elements of several components that wait on a device, between steps and between sessions.

mod builder;

pub use builder::QueueBuilder;

use builder::Order;
use graph::{AttrList, AttrValue, Graph, Node, OpBuilder, Output, Scope};
use ops::array::identity::ensure_shape;
use ops::raw;
use tensor::{DType, PartialShape};

/// A queue; a cheap shared handle. Ops that use it are made in its scope, on its device.
#[derive(Clone)]
pub struct Queue {
    handle: Output,
    types: Vec<DType>,
    /// One for each component, or none if elements may have any shape.
    shapes: Vec<PartialShape>,
}

impl Queue {
    /// A queue whose elements, of one component for each type, leave as they came.
    pub fn fifo(scope: &Scope, types: &[DType]) -> QueueBuilder {
        QueueBuilder::new(scope, Order::Fifo, "fifo_queue", types)
    }

    /// A queue whose elements leave in random order, and only while more than `min_after_dequeue` are in it.
    pub fn random_shuffle(scope: &Scope, types: &[DType], min_after_dequeue: i64) -> QueueBuilder {
        QueueBuilder::new(scope, Order::Random { min_after_dequeue }, "random_shuffle_queue", types)
    }

    /// As [`Queue::fifo`]; shapes may leave dimensions open, and the elements of one batch are filled up to the
    /// same size.
    pub fn padding_fifo(scope: &Scope, types: &[DType], shapes: &[PartialShape]) -> QueueBuilder {
        QueueBuilder::new(scope, Order::PaddingFifo, "padding_fifo_queue", types).shapes(shapes)
    }

    /// A queue whose elements have an int64 before the given components; those with small ones leave first.
    pub fn priority(scope: &Scope, types: &[DType], shapes: &[PartialShape]) -> QueueBuilder {
        QueueBuilder::new(scope, Order::Priority, "priority_queue", types).shapes(shapes)
    }

    /// The handle itself.
    pub fn handle(&self) -> &Output {
        &self.handle
    }

    /// The name of its node.
    pub fn name(&self) -> String {
        self.handle.node().name()
    }

    /// Types of the components.
    pub fn types(&self) -> &[DType] {
        &self.types
    }

    /// The graph it is in.
    pub fn graph(&self) -> &Graph {
        self.handle.scope().graph()
    }

    /// The same queue, whose ops are made in `scope`.
    pub fn seen_from(&self, scope: &Scope) -> Queue {
        Queue { handle: self.handle.seen_from(scope), ..self.clone() }
    }

    /// Puts in one element, when there is room.
    pub fn enqueue(&self, components: &[Output]) -> Node {
        self.named(raw::queue_enqueue_v2(&self.near(), components), "_enqueue").node()
    }

    /// Puts in the rows of `components`, as there is room.
    pub fn enqueue_many(&self, components: &[Output]) -> Node {
        self.named(raw::queue_enqueue_many_v2(&self.near(), components), "_EnqueueMany").node()
    }

    /// Takes out one element, when there is one; a closed and empty queue gives `OutOfRange`.
    pub fn dequeue(&self) -> Vec<Output> {
        let op = raw::queue_dequeue_v2(&self.near(), &self.types);
        self.outputs(&self.named(op, "_Dequeue").node(), None)
    }

    /// Takes out `n` elements as one batch, when there are as many.
    pub fn dequeue_many(&self, n: &Output) -> Vec<Output> {
        let op = raw::queue_dequeue_many_v2(&self.near(), n, &self.types);
        let node = self.named(op, "_DequeueMany").node();
        self.outputs(&node, Some(n.constant().and_then(|n| n.to_scalar::<i32>().ok()).map_or(-1, i64::from)))
    }

    /// As `dequeue_many`; gives what there is when the queue is closed.
    pub fn dequeue_up_to(&self, n: &Output) -> Vec<Output> {
        let op = raw::queue_dequeue_up_to_v2(&self.near(), n, &self.types);
        self.outputs(&self.named(op, "_DequeueUpTo").node(), Some(-1))
    }

    /// Lets no more elements in. Those that wait still get in, or are sent away if `cancel_pending_enqueues`.
    pub fn close(&self, cancel_pending_enqueues: bool) -> Node {
        let op = self.named(raw::queue_close_v2(&self.near()), "_Close");
        op.attr("cancel_pending_enqueues", cancel_pending_enqueues).node()
    }

    /// How many elements are in it.
    pub fn size(&self) -> Output {
        self.named(raw::queue_size_v2(&self.near()), "_Size").output()
    }

    /// Whether it is closed.
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

    /// The components a node gives, with what is known of their shapes; `rows` is the size of a batch, -1 if open.
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
