//! The ops that enqueue, dequeue, close queues, and return their sizes.

use super::state::{Batch, Queue};
use super::type_list;
use crate::data_structures::named::{find, signature_mismatch};
use crate::data_structures::waiting::answering;
use graph::{AttrValue, Node, Output, ShapeQuery};
use op::shapes::{none, scalar, unknown};
use op::{Ctx, Done, Home, Inputs, Kernel, Op, Setup, later, unary};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "QueueEnqueue(handle: Ref(string), components: [Tcomponents]); Tcomponents: list(type) >= 1; \
     timeout_ms: int = -1", none, enqueue_kernel;
    "QueueEnqueueV2(handle: resource, components: [Tcomponents]); Tcomponents: list(type) >= 1; \
     timeout_ms: int = -1; stateful", none, enqueue_kernel;
    "QueueEnqueueMany(handle: Ref(string), components: [Tcomponents]); Tcomponents: list(type) >= 1; \
     timeout_ms: int = -1", none, enqueue_many_kernel;
    "QueueEnqueueManyV2(handle: resource, components: [Tcomponents]); Tcomponents: list(type) >= 1; \
     timeout_ms: int = -1; stateful", none, enqueue_many_kernel;
    "QueueDequeue(handle: Ref(string)) -> components: [component_types]; component_types: list(type) >= 1; \
     timeout_ms: int = -1", unknown, dequeue_kernel;
    "QueueDequeueV2(handle: resource) -> components: [component_types]; component_types: list(type) >= 1; \
     timeout_ms: int = -1; stateful", unknown, dequeue_kernel;
    "QueueDequeueMany(handle: Ref(string), n: int32) -> components: [component_types]; \
     component_types: list(type) >= 1; timeout_ms: int = -1", unknown, dequeue_many_kernel;
    "QueueDequeueManyV2(handle: resource, n: int32) -> components: [component_types]; \
     component_types: list(type) >= 1; timeout_ms: int = -1; stateful", many_shape, dequeue_many_kernel;
    "QueueDequeueUpTo(handle: Ref(string), n: int32) -> components: [component_types]; \
     component_types: list(type) >= 1; timeout_ms: int = -1", unknown, dequeue_up_to_kernel;
    "QueueDequeueUpToV2(handle: resource, n: int32) -> components: [component_types]; \
     component_types: list(type) >= 1; timeout_ms: int = -1; stateful", unknown, dequeue_up_to_kernel;
    "QueueClose(handle: Ref(string)); cancel_pending_enqueues: bool = false", none, close_kernel;
    "QueueCloseV2(handle: resource); cancel_pending_enqueues: bool = false; stateful", none, close_kernel;
    "QueueIsClosed(handle: Ref(string)) -> is_closed: bool", scalar, is_closed_kernel;
    "QueueIsClosedV2(handle: resource) -> is_closed: bool; stateful", scalar, is_closed_kernel;
    "QueueSize(handle: Ref(string)) -> size: int32", scalar, size_kernel;
    "QueueSizeV2(handle: resource) -> size: int32; stateful", scalar, size_kernel;
};

/// Adds an element to a queue, when there is room.
pub fn queue_enqueue(queue: &Output, components: &[Output]) -> Node {
    queue.scope().op("QueueEnqueueV2").input(queue).inputs(components).node()
}

/// Adds the rows of `components` to a queue, as there is room.
pub fn queue_enqueue_many(queue: &Output, components: &[Output]) -> Node {
    queue.scope().op("QueueEnqueueManyV2").input(queue).inputs(components).node()
}

/// Removes an element from a queue, when there is one.
pub fn queue_dequeue(queue: &Output, types: &[DType]) -> Vec<Output> {
    let node = queue.scope().op("QueueDequeueV2").input(queue).attr("component_types", type_list(types)).node();
    (0..types.len()).map(|i| node.output(i)).collect()
}

/// Removes `n` elements from a queue as one batch, as soon as there are that many.
pub fn queue_dequeue_many(queue: &Output, n: &Output, types: &[DType]) -> Vec<Output> {
    let op = queue.scope().op("QueueDequeueManyV2").input(queue).input(n);
    let node = op.attr("component_types", type_list(types)).node();
    (0..types.len()).map(|i| node.output(i)).collect()
}

/// As `queue_dequeue_many`; returns fewer elements when the queue is closed.
pub fn queue_dequeue_up_to(queue: &Output, n: &Output, types: &[DType]) -> Vec<Output> {
    let op = queue.scope().op("QueueDequeueUpToV2").input(queue).input(n);
    let node = op.attr("component_types", type_list(types)).node();
    (0..types.len()).map(|i| node.output(i)).collect()
}

/// Closes a queue. Enqueues that wait are still served, unless they are cancelled.
pub fn queue_close(queue: &Output, cancel_pending_enqueues: bool) -> Node {
    let op = queue.scope().op("QueueCloseV2").input(queue);
    op.attr("cancel_pending_enqueues", cancel_pending_enqueues).node()
}

/// How many elements are in a queue.
pub fn queue_size(queue: &Output) -> Output {
    queue.scope().op("QueueSizeV2").input(queue).output()
}

/// Whether a queue is closed.
pub fn queue_is_closed(queue: &Output) -> Output {
    queue.scope().op("QueueIsClosedV2").input(queue).output()
}

fn many_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let n = query.constants.get(1).and_then(Option::as_ref).and_then(|n| n.to_scalar::<i32>().ok());
    match n {
        Some(n) if n < 0 => Err(invalid!("Input 'n' must be >= 0, but is {n}")),
        _ => unknown(query),
    }
}

/// The request of an op to a queue.
enum Request {
    Enqueue(Batch),
    Dequeue,
    DequeueMany {
        count: usize,
        small_batch: bool,
    },
    Close {
        cancel_pending_enqueues: bool,
    },
    /// No request: the batch is empty.
    Nothing,
}

/// A kernel that sends a request to the queue of its first input.
fn request_kernel(
    setup: &Setup<'_>,
    request: impl Fn(&Queue, &mut Inputs) -> Result<Request> + Send + Sync + 'static,
) -> Result<Kernel> {
    if setup.find("timeout_ms").is_some_and(|timeout| *timeout != AttrValue::Int(-1)) {
        return Err(invalid!("Timeout not supported yet."));
    }
    let home = Home::of(setup);
    let prepare = move |inputs: &mut Inputs| {
        let queue = find::<Queue>(&home, &inputs.tensor(0)?)?;
        let request = request(&queue, inputs)?;
        Ok((queue, request))
    };
    Ok(later(move |ctx, mut inputs, done| match prepare(&mut inputs) {
        Err(error) => done(Err(error)),
        Ok((queue, request)) => ask(ctx, &queue, request, done),
    }))
}

fn ask(ctx: &Ctx<'_>, queue: &Arc<Queue>, request: Request, done: Done) {
    let answer = answering(done);
    match request {
        Request::Enqueue(batch) => queue.enqueue(ctx.env, batch, answer),
        Request::Dequeue => queue.dequeue(ctx.env, answer),
        Request::DequeueMany { count, small_batch } => queue.dequeue_many(ctx.env, count, small_batch, answer),
        Request::Close { cancel_pending_enqueues } => queue.close(ctx.env, cancel_pending_enqueues, answer),
        Request::Nothing => answer(Ok(Vec::new())),
    }
}

/// Checks that the types of a node's inputs after the first `fixed`, or of its outputs, are those of a queue.
struct Types {
    inputs: Vec<DType>,
    outputs: Vec<DType>,
    fixed: usize,
}

impl Types {
    fn of(setup: &Setup<'_>, fixed: usize) -> Types {
        Types { inputs: setup.input_types().to_vec(), outputs: setup.output_types().to_vec(), fixed }
    }

    fn check(&self, queue: &Queue) -> Result<()> {
        let types = &queue.spec.types;
        let puts = self.outputs.is_empty();
        if (puts && self.inputs[self.fixed..] == types[..]) || (!puts && self.outputs == *types) {
            return Ok(());
        }
        let fixed = &self.inputs[..self.fixed];
        Err(match puts {
            true => signature_mismatch(&self.inputs, &[], &[fixed, types].concat(), &[]),
            false => signature_mismatch(&self.inputs, &self.outputs, fixed, types),
        })
    }
}

fn enqueue_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let types = Types::of(setup, 1);
    request_kernel(setup, move |queue, inputs| {
        types.check(queue)?;
        let element = inputs.tensors_from(1)?;
        queue.spec.check_element(&element)?;
        Ok(Request::Enqueue(Batch::One(element)))
    })
}

fn enqueue_many_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let types = Types::of(setup, 1);
    request_kernel(setup, move |queue, inputs| {
        types.check(queue)?;
        let components = inputs.tensors_from(1)?;
        match queue.spec.check_rows(&components)? {
            0 => Ok(Request::Nothing),
            count => Ok(Request::Enqueue(Batch::Rows { components, count })),
        }
    })
}

fn dequeue_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let types = Types::of(setup, 1);
    request_kernel(setup, move |queue, _| {
        types.check(queue)?;
        Ok(Request::Dequeue)
    })
}

fn dequeue_many_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dequeue_batch(setup, "DequeueManyOp", false)
}

fn dequeue_up_to_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dequeue_batch(setup, "DequeueUpToOp", true)
}

fn dequeue_batch(setup: &Setup<'_>, name: &'static str, small_batch: bool) -> Result<Kernel> {
    let types = Types::of(setup, 2);
    request_kernel(setup, move |queue, inputs| {
        let n = inputs.tensor(1)?.to_scalar::<i32>()?;
        let count = usize::try_from(n).map_err(|_| invalid!("{name} requested {n} < 0 elements"))?;
        types.check(queue)?;
        Ok(Request::DequeueMany { count, small_batch })
    })
}

fn close_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let cancel_pending_enqueues = setup.bool("cancel_pending_enqueues")?;
    request_kernel(setup, move |_, _| Ok(Request::Close { cancel_pending_enqueues }))
}

fn is_closed_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(unary(move |_, handle| Ok(Tensor::scalar(find::<Queue>(&home, &handle)?.is_closed()))).free())
}

fn size_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(unary(move |_, handle| Ok(Tensor::scalar(find::<Queue>(&home, &handle)?.len() as i32))).free())
}
