//! Collective ops of the first version: attributes name the group and the operation.

use super::{Form, check_size, divides, gathered, merge, start, timeout};
use graph::{AttrValue, ShapeQuery};
use op::shapes::{attr_shape, unchanged};
use op::{
    CollectiveKind, CollectiveRequest, Grad, GroupRequest, Inputs, Kernel, Op, PLAIN, Setup, Subdivisions, later,
};
use status::{Result, internal, invalid};
use tensor::{PartialShape, Shape};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "CollectiveReduce(input: T) -> data: T; T: {bfloat16, float, half, double, int32, int64}; \
              group_size: int; group_key: int; instance_key: int; merge_op: {\"Min\", \"Max\", \"Mul\", \"Add\"}; \
              final_op: {\"Id\", \"Div\"}; subdiv_offsets: list(int); wait_for: list(int) = []; \
              communication_hint: string = \"auto\"; timeout_seconds: float = 0.0; stateful; distributed",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: reduce,
        facts: PLAIN,
    },
    Op {
        def: "CollectiveGather(input: T) -> data: T; T: {float, half, double, int32, int64}; group_size: int; \
              group_key: int; instance_key: int; shape: shape; communication_hint: string = \"auto\"; \
              timeout_seconds: float = 0.0; stateful; distributed",
        shape: gather_shape,
        grad: Grad::Unknown,
        kernel: gather,
        facts: PLAIN,
    },
    Op {
        def: "CollectiveBcastSend(input: T) -> data: T; T: {bool, float, half, double, int32, int64}; \
              group_size: int; group_key: int; instance_key: int; shape: shape; \
              communication_hint: string = \"auto\"; timeout_seconds: float = 0.0; stateful; distributed",
        shape: attr_shape,
        grad: Grad::Unknown,
        kernel: send,
        facts: PLAIN,
    },
    Op {
        def: "CollectiveBcastRecv() -> data: T; T: {bool, float, half, double, int32, int64}; group_size: int; \
              group_key: int; instance_key: int; shape: shape; communication_hint: string = \"auto\"; \
              timeout_seconds: float = 0.0; stateful; distributed",
        shape: attr_shape,
        grad: Grad::Unknown,
        kernel: recv,
        facts: PLAIN,
    },
];

/// What the attributes of a node say about its group and its operation.
struct Attributes {
    form: Form,
    group: GroupRequest,
    instance_key: i32,
    subdivisions: Subdivisions,
}

impl Attributes {
    fn of(setup: &Setup<'_>, operation: &str, subdivisions: Vec<i32>) -> Result<Attributes> {
        let key = |name: &str| -> Result<i32> {
            let value = setup.int(name)?;
            i32::try_from(value).map_err(|_| invalid!("{name} {value} does not fit 32 bits"))
        };
        let size = check_size(setup.int("group_size")?)?;
        let timeout = timeout(setup.float("timeout_seconds")?);
        Ok(Attributes {
            form: Form::of(setup, operation)?,
            group: GroupRequest { key: key("group_key")?, size, rank: None, timeout },
            instance_key: key("instance_key")?,
            subdivisions: match subdivisions.is_empty() {
                true => Subdivisions::AtMost(-1),
                false => Subdivisions::Offsets(subdivisions),
            },
        })
    }

    fn request(
        &self,
        kind: CollectiveKind,
        mut inputs: Inputs,
        shape: impl FnOnce(&Shape) -> Result<Shape>,
    ) -> Result<CollectiveRequest> {
        let input = inputs.tensor(0)?;
        Ok(CollectiveRequest {
            shape: shape(input.shape())?,
            input: Some(input),
            ..self.without_input(kind, Shape::scalar())
        })
    }

    fn without_input(&self, kind: CollectiveKind, shape: Shape) -> CollectiveRequest {
        CollectiveRequest {
            name: self.form.name.clone(),
            device: self.form.device.clone(),
            group: self.group.clone(),
            is_joined: false,
            instance_key: self.instance_key,
            kind,
            dtype: self.form.dtype,
            shape,
            subdivisions: self.subdivisions.clone(),
            input: None,
        }
    }
}

fn reduce(setup: &Setup<'_>) -> Result<Kernel> {
    let ((merge, name), divide) = (merge(setup, "merge_op")?, divides(setup)?);
    let operation = format!("Reduce({name},{})", if divide { "Div" } else { "Id" });
    let offsets = setup.ints("subdiv_offsets")?.iter().map(|&offset| offset as i32).collect();
    let attributes = Attributes::of(setup, &operation, offsets)?;
    let kind = CollectiveKind::Reduce { merge, divide };
    Ok(later(move |ctx, inputs, done| start(ctx, attributes.request(kind, inputs, |shape| Ok(shape.clone())), done)))
}

fn gather(setup: &Setup<'_>) -> Result<Kernel> {
    let attributes = Attributes::of(setup, "Gather", vec![0])?;
    let size = attributes.group.size;
    let request = move |inputs| attributes.request(CollectiveKind::Gather, inputs, |shape| gathered(shape, size));
    Ok(later(move |ctx, inputs, done| start(ctx, request(inputs), done)))
}

/// The shape in the attribute of a broadcast.
fn declared(setup: &Setup<'_>) -> Result<Shape> {
    let shape = setup.shape("shape")?;
    shape.known().ok_or_else(|| invalid!("Attr shape of {} is {shape}; it must be fully defined", setup.name()))
}

fn send(setup: &Setup<'_>) -> Result<Kernel> {
    let (attributes, declared) = (Attributes::of(setup, "Broadcast(1)", vec![0])?, declared(setup)?);
    let name = attributes.form.name.clone();
    let request = move |inputs| {
        attributes.request(CollectiveKind::Broadcast { is_source: true }, inputs, |shape| match *shape == declared {
            true => Ok(shape.clone()),
            false => Err(internal!("Declared shape of op {name} does not match shape of input")),
        })
    };
    Ok(later(move |ctx, inputs, done| start(ctx, request(inputs), done)))
}

fn recv(setup: &Setup<'_>) -> Result<Kernel> {
    let (attributes, declared) = (Attributes::of(setup, "Broadcast(0)", vec![0])?, declared(setup)?);
    let kind = CollectiveKind::Broadcast { is_source: false };
    Ok(later(move |ctx, _, done| start(ctx, Ok(attributes.without_input(kind, declared.clone())), done)))
}

/// The input, with as many rows as all members have together.
fn gather_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    let mut dims = dims.to_vec();
    match (dims.first_mut(), query.attr("group_size")?) {
        (None, _) => return Err(invalid!("Shape must be at least rank 1 but is rank 0")),
        (Some(first), AttrValue::Int(size)) if *first >= 0 => *first = first.saturating_mul(*size),
        _ => {}
    }
    Ok(vec![PartialShape::new(&dims)])
}
