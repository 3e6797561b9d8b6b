//! Queues: elements of several components that wait on a device, between steps and between sessions.

mod builder;

pub use builder::QueueBuilder;

use graph::{AttrList, AttrValue, Graph, Node, Output, Scope};
use ops::array::identity::ensure_shape;
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
        QueueBuilder::new(scope, "FIFOQueueV2", "fifo_queue", types)
    }

    /// A queue whose elements leave in random order, and only while more than `min_after_dequeue` are in it.
    pub fn random_shuffle(scope: &Scope, types: &[DType], min_after_dequeue: i64) -> QueueBuilder {
        QueueBuilder::new(scope, "RandomShuffleQueueV2", "random_shuffle_queue", types).kept(min_after_dequeue)
    }

    /// As [`Queue::fifo`]; shapes may leave dimensions open, and the elements of one batch are filled up to the
    /// same size.
    pub fn padding_fifo(scope: &Scope, types: &[DType], shapes: &[PartialShape]) -> QueueBuilder {
        QueueBuilder::new(scope, "PaddingFIFOQueueV2", "padding_fifo_queue", types).shapes(shapes)
    }

    /// A queue whose elements have an int64 before the given components; those with small ones leave first.
    pub fn priority(scope: &Scope, types: &[DType], shapes: &[PartialShape]) -> QueueBuilder {
        QueueBuilder::new(scope, "PriorityQueueV2", "priority_queue", types).shapes(shapes)
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
        self.op("QueueEnqueueV2", "enqueue").input(&self.handle).inputs(components).node()
    }

    /// Puts in the rows of `components`, as there is room.
    pub fn enqueue_many(&self, components: &[Output]) -> Node {
        self.op("QueueEnqueueManyV2", "EnqueueMany").input(&self.handle).inputs(components).node()
    }

    /// Takes out one element, when there is one; a closed and empty queue gives `OutOfRange`.
    pub fn dequeue(&self) -> Vec<Output> {
        let op = self.op("QueueDequeueV2", "Dequeue").input(&self.handle);
        self.outputs(&op.attr("component_types", self.types.clone()).node(), None)
    }

    /// Takes out `n` elements as one batch, when there are as many.
    pub fn dequeue_many(&self, n: &Output) -> Vec<Output> {
        let op = self.op("QueueDequeueManyV2", "DequeueMany").input(&self.handle).input(n);
        let node = op.attr("component_types", self.types.clone()).node();
        self.outputs(&node, Some(n.constant().and_then(|n| n.to_scalar::<i32>().ok()).map_or(-1, i64::from)))
    }

    /// As `dequeue_many`; gives what there is when the queue is closed.
    pub fn dequeue_up_to(&self, n: &Output) -> Vec<Output> {
        let op = self.op("QueueDequeueUpToV2", "DequeueUpTo").input(&self.handle).input(n);
        self.outputs(&op.attr("component_types", self.types.clone()).node(), Some(-1))
    }

    /// Lets no more elements in. Those that wait still get in, or are sent away if `cancel_pending_enqueues`.
    pub fn close(&self, cancel_pending_enqueues: bool) -> Node {
        let op = self.op("QueueCloseV2", "Close").input(&self.handle);
        op.attr("cancel_pending_enqueues", cancel_pending_enqueues).node()
    }

    /// How many elements are in it.
    pub fn size(&self) -> Output {
        self.op("QueueSizeV2", "Size").input(&self.handle).output()
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> Output {
        self.op("QueueIsClosedV2", "Is_Closed").input(&self.handle).output()
    }

    /// An op called after the queue, as TensorFlow calls it, on its device.
    fn op(&self, op: &str, what: &str) -> graph::OpBuilder {
        let name = self.name();
        let own = name.rsplit('/').next().unwrap_or(&name);
        self.handle.scope().beside(self.handle.node()).op(op).named(&format!("{own}_{what}"))
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
