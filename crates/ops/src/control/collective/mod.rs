//! Collective ops: the members of a group of devices combine their values. The kernels read what a node asks for; the
//! worker takes part in the operation.

pub(crate) mod by_attribute;
pub(crate) mod by_communicator;
pub(crate) mod by_input;
pub(crate) mod group;

use op::{CollectiveRequest, CollectiveRuntime, Ctx, Done, Setup, outputs};
use status::{Result, internal, invalid};
use std::sync::Arc;
use std::time::Duration;
use tensor::{DType, Shape, Tensor};

/// The merge op of an attribute, with the name of the op that TensorFlow merges with.
fn merge(setup: &Setup<'_>, attr: &str) -> Result<(op::Merge, &'static str)> {
    Ok(match &*setup.string(attr)? {
        "Add" => (op::Merge::Add, "Add"),
        "Mul" => (op::Merge::Mul, "Mul"),
        "Min" => (op::Merge::Min, "Minimum"),
        "Max" => (op::Merge::Max, "Maximum"),
        other => return Err(invalid!("{attr} must be one of {{\"Min\", \"Max\", \"Mul\", \"Add\"}} but got {other}")),
    })
}

/// Whether the final op of a reduction divides by the number of members.
fn divides(setup: &Setup<'_>) -> Result<bool> {
    match &*setup.string("final_op")? {
        "Id" => Ok(false),
        "Div" => Ok(true),
        other => Err(invalid!("final_op must be one of {{\"Id\", \"Div\"}} but got {other}")),
    }
}

/// The timeout of a node, if it has one.
fn timeout(seconds: f32) -> Option<Duration> {
    Some(seconds).filter(|&seconds| seconds > 0.0).and_then(|seconds| Duration::try_from_secs_f32(seconds).ok())
}

fn check_size(size: i64) -> Result<usize> {
    match usize::try_from(size) {
        Ok(size) if size > 0 => Ok(size),
        _ => Err(invalid!("group_size must be positive integer but got {size}")),
    }
}

/// The shape of what all members have together.
fn gathered(shape: &Shape, members: usize) -> Result<Shape> {
    let mut shape = shape.clone();
    match shape.dims_mut().first_mut() {
        Some(first) => *first = first.saturating_mul(members),
        None => return Err(invalid!("input should have rank > 0, received 0")),
    }
    shape.checked_elements()?;
    Ok(shape)
}

/// What a node of a collective op asks for in every run.
struct Form {
    /// The node and its operation, as in TensorFlow's messages.
    name: String,
    device: Arc<str>,
    dtype: DType,
}

impl Form {
    fn of(setup: &Setup<'_>, operation: &str) -> Result<Form> {
        let name = format!("{}: {operation}", setup.name());
        Ok(Form { name, device: setup.device().into(), dtype: setup.dtype("T")? })
    }
}

/// Takes part in an operation.
fn start(ctx: &Ctx<'_>, request: Result<CollectiveRequest>, done: Done) {
    let (request, runtime) = match (request, ctx.env.extensions.get::<CollectiveRuntime>()) {
        (Ok(request), Some(runtime)) => (request, runtime),
        (Err(error), _) => return done(Err(error)),
        (Ok(request), None) => return done(Err(no_runtime(&request.name))),
    };
    runtime.0.run(ctx, request, Box::new(move |result| done(result.map(|tensor: Tensor| outputs![tensor]))));
}

fn no_runtime(name: &str) -> status::Error {
    internal!("Failed to get CollectiveExecutor from OpKernelContext for Op {name}")
}
