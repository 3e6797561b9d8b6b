//! Collective ops of the third version: a resource holds the group, and counts the operations.

use super::{Form, check_size, merge, no_runtime, start, timeout};
use op::shapes::{scalar, unchanged};
use op::{
    CollectiveKind, CollectiveRequest, CollectiveRuntime, Ctx, Done, Grad, GroupRequest, Home, Inputs, Kernel, Op,
    PLAIN, Resource, Setup, Subdivisions, handle_of, later, outputs,
};
use status::{Result, invalid, unimplemented_op};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use tensor::{Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "CollectiveInitializeCommunicator(group_key: int32, rank: int32, group_size: int32) -> \
              communicator: resource; communication_hint: string = \"auto\"; timeout_seconds: float = 0.0; stateful; \
              distributed",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: initialize,
        facts: PLAIN,
    },
    Op {
        def: "CollectiveReduceV3(input: T, communicator: resource, group_assignment: int32) -> data: T; \
              T: {bfloat16, float, half, double, int32, int64}; reduction: {\"Min\", \"Max\", \"Mul\", \"Add\"}; \
              timeout_seconds: float = 0.0; stateful; distributed",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: reduce,
        facts: PLAIN,
    },
    Op {
        def: "CollectiveAllToAllV3(input: T, communicator: resource, group_assignment: int32) -> data: T; \
              T: {bfloat16, float, half, double, int32, int64}; timeout_seconds: float = 0.0; stateful; distributed",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: |setup| kernel(setup, "AllToAllV3", CollectiveKind::AllToAll),
        facts: PLAIN,
    },
];

/// A member of a group, and the key of its next operation.
struct Communicator {
    group: GroupRequest,
    next: AtomicI32,
}

impl Resource for Communicator {
    const TYPE_NAME: &'static str = "N10tensorflow12_GLOBAL__N_123CollectiveGroupResourceE";
}

fn initialize(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, timeout) = (Home::of(setup), timeout(setup.float("timeout_seconds")?));
    let name = setup.name().to_string();
    Ok(later(move |ctx, inputs, done| join(&home, &name, timeout, ctx, inputs, done)))
}

fn join(home: &Home, name: &str, timeout: Option<Duration>, ctx: &Ctx<'_>, inputs: Inputs, done: Done) {
    let made = group(inputs, timeout).and_then(|group| Ok((communicator(home, &group)?, group)));
    let (handle, group) = match made {
        Ok(made) => made,
        Err(error) => return done(Err(error)),
    };
    let Some(runtime) = ctx.env.extensions.get::<CollectiveRuntime>() else { return done(Err(no_runtime(name))) };
    let joined = move |joined: Result<()>| done(joined.map(|()| outputs![handle]));
    runtime.0.join(ctx.env, home.device(), group, Box::new(joined));
}

/// The group in the inputs of a node.
fn group(mut inputs: Inputs, timeout: Option<Duration>) -> Result<GroupRequest> {
    let mut scalar = |index: usize, name: &str| -> Result<i32> {
        let tensor = inputs.tensor(index)?;
        match tensor.shape().rank() {
            0 => tensor.to_scalar(),
            _ => Err(invalid!(
                "Unexpected dimensions on input {name}. It shoulbe a scalar, got tensor with shape {}", // TensorFlow's spelling
                tensor.shape()
            )),
        }
    };
    let (key, rank, size) = (scalar(0, "group_key")?, scalar(1, "rank")?, scalar(2, "group_size")?);
    let size = check_size(size.into())?;
    match usize::try_from(rank) {
        Err(_) => Err(invalid!("rank must be non-negative integer but got {rank}")),
        Ok(rank) if rank >= size => Err(invalid!("rank must be less than group size but got {rank} >= {size}")),
        Ok(rank) => Ok(GroupRequest { key, size, rank: Some(rank), timeout }),
    }
}

/// Creates the resource of a member.
fn communicator(home: &Home, group: &GroupRequest) -> Result<Tensor> {
    let name = format!("{}:r{:04}", group.key, group.rank.unwrap_or(0));
    let handle = home.handle::<Communicator>("collective_op_group", &name, Vec::new());
    let resource = Communicator { group: group.clone(), next: AtomicI32::new(0) };
    home.resources().create(&handle.container, &handle.name, Arc::new(resource))?;
    Tensor::from_handles(Shape::scalar(), vec![handle])
}

fn reduce(setup: &Setup<'_>) -> Result<Kernel> {
    let (merge, name) = merge(setup, "reduction")?;
    kernel(setup, &format!("ReduceV3({name})"), CollectiveKind::Reduce { merge, divide: false })
}

fn kernel(setup: &Setup<'_>, operation: &str, kind: CollectiveKind) -> Result<Kernel> {
    let (home, form) = (Home::of(setup), Form::of(setup, operation)?);
    let timeout = timeout(setup.float("timeout_seconds")?);
    Ok(later(move |ctx, inputs, done| start(ctx, request(&home, &form, timeout, kind, inputs), done)))
}

fn request(
    home: &Home,
    form: &Form,
    timeout: Option<Duration>,
    kind: CollectiveKind,
    mut inputs: Inputs,
) -> Result<CollectiveRequest> {
    let (input, communicator, assignment) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let communicator = home.find::<Communicator>(handle_of(&communicator)?)?;
    if assignment.elements() > 0 {
        return Err(unimplemented_op!("Group assignments are not supported yet."));
    }
    // A timeout of the node switches on that of the communicator.
    let timeout = timeout.and(communicator.group.timeout);
    Ok(CollectiveRequest {
        name: form.name.clone(),
        device: form.device.clone(),
        group: GroupRequest { timeout, ..communicator.group.clone() },
        is_joined: true,
        // 21 bits count; the others are the number of the group in the assignment.
        instance_key: communicator.next.fetch_add(1, Ordering::Relaxed),
        kind,
        dtype: form.dtype,
        shape: input.shape().clone(),
        subdivisions: Subdivisions::AtMost(-1),
        input: Some(input),
    })
}
