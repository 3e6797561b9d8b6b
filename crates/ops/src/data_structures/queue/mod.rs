//! Queues that outlive steps: first in first out, padded, shuffled, and by priority.

pub(crate) mod access;
mod items;
mod padding;
pub(super) mod spec;
pub(super) mod state;
mod tokens;

pub use self::access::{
    queue_close, queue_dequeue, queue_dequeue_many, queue_dequeue_up_to, queue_enqueue, queue_enqueue_many,
    queue_is_closed, queue_size,
};

use self::spec::Spec;
use self::state::Queue;
use crate::data_structures::named::{Unnamed, maker, pair};
use graph::{AttrList, AttrValue, Output, Scope, ShapeQuery, StateRole};
use op::shapes::scalar;
use op::{Grad, Kernel, Op, PLAIN, Setup, handle_of, many, outputs};
use status::Result;
use tensor::{DType, PartialShape};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "FIFOQueue() -> handle: Ref(string); component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; \
              capacity: int = -1; container: string = \"\"; shared_name: string = \"\"; stateful",
        shape: two_strings,
        grad: Grad::Stop,
        kernel: queue_kernel,
        facts: PLAIN,
    },
    Op {
        def: "FIFOQueueV2() -> handle: resource; component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; \
              capacity: int = -1; container: string = \"\"; shared_name: string = \"\"; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: queue_kernel,
        facts: PLAIN.state_role(StateRole::CreatesQueue),
    },
    Op {
        def: "PaddingFIFOQueue() -> handle: Ref(string); component_types: list(type) >= 1; \
              shapes: list(shape) >= 0 = []; capacity: int = -1; container: string = \"\"; \
              shared_name: string = \"\"; stateful",
        shape: two_strings,
        grad: Grad::Stop,
        kernel: queue_kernel,
        facts: PLAIN,
    },
    Op {
        def: "PaddingFIFOQueueV2() -> handle: resource; component_types: list(type) >= 1; \
              shapes: list(shape) >= 0 = []; capacity: int = -1; container: string = \"\"; \
              shared_name: string = \"\"; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: queue_kernel,
        facts: PLAIN.state_role(StateRole::CreatesQueue),
    },
    Op {
        def: "RandomShuffleQueue() -> handle: Ref(string); component_types: list(type) >= 1; \
              shapes: list(shape) >= 0 = []; capacity: int = -1; min_after_dequeue: int = 0; seed: int = 0; \
              seed2: int = 0; container: string = \"\"; shared_name: string = \"\"; stateful",
        shape: two_strings,
        grad: Grad::Stop,
        kernel: queue_kernel,
        facts: PLAIN,
    },
    Op {
        def: "RandomShuffleQueueV2() -> handle: resource; component_types: list(type) >= 1; \
              shapes: list(shape) >= 0 = []; capacity: int = -1; min_after_dequeue: int = 0; seed: int = 0; \
              seed2: int = 0; container: string = \"\"; shared_name: string = \"\"; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: queue_kernel,
        facts: PLAIN.state_role(StateRole::CreatesQueue),
    },
    Op {
        def: "PriorityQueue() -> handle: Ref(string); component_types: list(type) >= 0 = []; \
              shapes: list(shape) >= 0; capacity: int = -1; container: string = \"\"; shared_name: string = \"\"; \
              stateful",
        shape: two_strings,
        grad: Grad::Stop,
        kernel: queue_kernel,
        facts: PLAIN,
    },
    Op {
        def: "PriorityQueueV2() -> handle: resource; component_types: list(type) >= 0 = []; \
              shapes: list(shape) >= 0; capacity: int = -1; container: string = \"\"; shared_name: string = \"\"; \
              stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: queue_kernel,
        facts: PLAIN.state_role(StateRole::CreatesQueue),
    },
    Op {
        def: "FakeQueue(resource: resource) -> handle: Ref(string); stateful",
        shape: two_strings,
        grad: Grad::Stop,
        kernel: fake_queue_kernel,
        facts: PLAIN,
    },
];

/// A first-in, first-out queue of at most `capacity` elements with components of these types and shapes.
pub fn fifo_queue(scope: &Scope, name: &str, capacity: i64, types: &[DType], shapes: &[PartialShape]) -> Output {
    let op = scope.op("FIFOQueueV2").named(name).attr("capacity", capacity);
    op.attr("component_types", type_list(types)).attr("shapes", shape_list(shapes)).output()
}

/// As `fifo_queue`; shapes may leave dimensions open, and the elements of one batch are padded to the same size.
pub fn padding_fifo_queue(
    scope: &Scope,
    name: &str,
    capacity: i64,
    types: &[DType],
    shapes: &[PartialShape],
) -> Output {
    let op = scope.op("PaddingFIFOQueueV2").named(name).attr("capacity", capacity);
    op.attr("component_types", type_list(types)).attr("shapes", shape_list(shapes)).output()
}

/// A queue whose elements leave in random order, and only while more than `min_after_dequeue` are in it.
pub fn random_shuffle_queue(
    scope: &Scope,
    name: &str,
    (capacity, min_after_dequeue): (i64, i64),
    types: &[DType],
    shapes: &[PartialShape],
    (seed, seed2): (i64, i64),
) -> Output {
    let op = scope.op("RandomShuffleQueueV2").named(name).attr("capacity", capacity);
    let op = op.attr("component_types", type_list(types)).attr("shapes", shape_list(shapes));
    op.attr("min_after_dequeue", min_after_dequeue).attr("seed", seed).attr("seed2", seed2).output()
}

/// A queue whose elements have an int64 priority before the given components; those with small priorities leave first.
pub fn priority_queue(scope: &Scope, name: &str, capacity: i64, types: &[DType], shapes: &[PartialShape]) -> Output {
    let op = scope.op("PriorityQueueV2").named(name).attr("capacity", capacity);
    op.attr("component_types", type_list(types)).attr("shapes", shape_list(shapes)).output()
}

pub(crate) fn type_list(types: &[DType]) -> AttrValue {
    AttrValue::from(AttrList { types: types.to_vec(), ..AttrList::default() })
}

fn shape_list(shapes: &[PartialShape]) -> AttrValue {
    AttrValue::from(AttrList { shapes: shapes.to_vec(), ..AttrList::default() })
}

/// The shape of the handles of older graphs: a container and a name.
pub(crate) fn two_strings(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::new(&[2])])
}

fn queue_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = Spec::of(setup)?;
    let (wanted, op) = (spec.clone(), setup.def().op.clone());
    maker(
        setup,
        Unnamed::Private,
        move |name| Ok(Queue::new(spec.named(name)?)),
        move |queue| queue.spec.accepts(&op, &wanted),
    )
}

/// The handle of a queue in the form of older graphs.
fn fake_queue_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let tensor = inputs.tensor(0)?;
        let handle = handle_of(&tensor)?;
        Ok(outputs![pair(&handle.container, &handle.name)?])
    })
    .free())
}
