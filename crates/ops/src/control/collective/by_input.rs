//! Collective ops of the second version: inputs name the group and the operation.

use super::{Form, check_size, divides, gathered, merge, start, timeout};
use graph::ShapeQuery;
use op::shapes::{integers, shape_from_input, unchanged};
use op::{
    CollectiveKind, CollectiveRequest, Grad, GroupRequest, Inputs, Kernel, Op, PLAIN, Setup, Subdivisions, later,
};
use status::{Result, invalid};
use std::time::Duration;
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "CollectiveReduceV2(input: T, group_size: int32, group_key: int32, instance_key: int32, \
              ordering_token: Nordering_token * resource) -> data: T; \
              T: {bfloat16, float, half, double, int32, int64}; merge_op: {\"Min\", \"Max\", \"Mul\", \"Add\"}; \
              final_op: {\"Id\", \"Div\"}; communication_hint: string = \"auto\"; timeout_seconds: float = 0.0; \
              is_stateless: bool = false; Nordering_token: int >= 0 = 0; max_subdivs_per_device: int = -1; stateful; \
              distributed",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: reduce,
        facts: PLAIN,
    },
    Op {
        def: "CollectiveGatherV2(input: T, group_size: int32, group_key: int32, instance_key: int32, \
              ordering_token: Nordering_token * resource) -> data: T; T: {float, half, double, int32, int64}; \
              communication_hint: string = \"auto\"; timeout_seconds: float = 0.0; is_stateless: bool = false; \
              Nordering_token: int >= 0 = 0; stateful; distributed",
        shape: other_rows,
        grad: Grad::Unknown,
        kernel: gather,
        facts: PLAIN,
    },
    Op {
        def: "CollectiveAllToAllV2(input: T, group_size: int32, group_key: int32, instance_key: int32, \
              ordering_token: Nordering_token * resource) -> data: T; \
              T: {bfloat16, float, half, double, int32, int64}; communication_hint: string = \"auto\"; \
              timeout_seconds: float = 0.0; is_stateless: bool = false; Nordering_token: int >= 0 = 0; stateful; \
              distributed",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: all_to_all,
        facts: PLAIN,
    },
    Op {
        def: "CollectiveBcastSendV2(input: T, group_size: int32, group_key: int32, instance_key: int32) -> data: T; \
              T: {bool, float, half, double, int32, int64}; communication_hint: string = \"auto\"; \
              timeout_seconds: float = 0.0; stateful; distributed",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: send,
        facts: PLAIN,
    },
    Op {
        def: "CollectiveBcastRecvV2(group_size: int32, group_key: int32, instance_key: int32, shape: Tshape) -> \
              data: T; T: {bool, float, half, double, int32, int64}; Tshape: {int32, int64} = int32; \
              communication_hint: string = \"auto\"; timeout_seconds: float = 0.0; stateful; distributed",
        shape: |query| Ok(vec![shape_from_input(query, 3)]),
        grad: Grad::Unknown,
        kernel: recv,
        facts: PLAIN,
    },
];

/// What the attributes of a node say; its inputs say the rest.
struct Attributes {
    form: Form,
    timeout: Option<Duration>,
    subdivisions: Subdivisions,
}

impl Attributes {
    fn of(setup: &Setup<'_>, operation: &str, subdivisions: Subdivisions) -> Result<Attributes> {
        let timeout = timeout(setup.float("timeout_seconds")?);
        Ok(Attributes { form: Form::of(setup, operation)?, timeout, subdivisions })
    }

    /// A request, whose keys begin at an input.
    fn request(&self, kind: CollectiveKind, inputs: &mut Inputs, keys: usize) -> Result<CollectiveRequest> {
        let mut scalar = |index: usize, name: &str| -> Result<i32> {
            let tensor = inputs.tensor(keys + index)?;
            match tensor.shape().rank() {
                0 => tensor.to_scalar(),
                _ => Err(invalid!("Unexpected dimensions on input {name}, got {}", tensor.shape())),
            }
        };
        let size = scalar(0, "group_size")?;
        let (key, instance_key) = (scalar(1, "group_key")?, scalar(2, "instance_key")?);
        Ok(CollectiveRequest {
            name: self.form.name.clone(),
            device: self.form.device.clone(),
            group: GroupRequest { key, size: check_size(size.into())?, rank: None, timeout: self.timeout },
            is_joined: false,
            instance_key,
            kind,
            dtype: self.form.dtype,
            shape: Shape::scalar(),
            subdivisions: self.subdivisions.clone(),
            input: None,
        })
    }

    /// A request with an input, whose shape decides that of the result.
    fn with_input(
        &self,
        kind: CollectiveKind,
        mut inputs: Inputs,
        shape: fn(&Tensor, usize) -> Result<Shape>,
    ) -> Result<CollectiveRequest> {
        let request = self.request(kind, &mut inputs, 1)?;
        let input = inputs.tensor(0)?;
        Ok(CollectiveRequest { shape: shape(&input, request.group.size)?, input: Some(input), ..request })
    }
}

fn same(input: &Tensor, _: usize) -> Result<Shape> {
    Ok(input.shape().clone())
}

fn reduce(setup: &Setup<'_>) -> Result<Kernel> {
    let ((merge, name), divide) = (merge(setup, "merge_op")?, divides(setup)?);
    let operation = format!("ReduceV2({name},{})", if divide { "Div" } else { "Id" });
    let subdivisions = Subdivisions::AtMost(setup.int("max_subdivs_per_device")? as i32);
    with_input(setup, &operation, subdivisions, CollectiveKind::Reduce { merge, divide }, same)
}

fn gather(setup: &Setup<'_>) -> Result<Kernel> {
    let shape = |input: &Tensor, members: usize| gathered(input.shape(), members);
    with_input(setup, "GatherV2", Subdivisions::Offsets(vec![0]), CollectiveKind::Gather, shape)
}

fn all_to_all(setup: &Setup<'_>) -> Result<Kernel> {
    with_input(setup, "AllToAllV2", Subdivisions::AtMost(-1), CollectiveKind::AllToAll, same)
}

fn send(setup: &Setup<'_>) -> Result<Kernel> {
    let kind = CollectiveKind::Broadcast { is_source: true };
    with_input(setup, "Broadcast(1)", Subdivisions::Offsets(vec![0]), kind, same)
}

fn with_input(
    setup: &Setup<'_>,
    operation: &str,
    subdivisions: Subdivisions,
    kind: CollectiveKind,
    shape: fn(&Tensor, usize) -> Result<Shape>,
) -> Result<Kernel> {
    let attributes = Attributes::of(setup, operation, subdivisions)?;
    Ok(later(move |ctx, inputs, done| start(ctx, attributes.with_input(kind, inputs, shape), done)))
}

fn recv(setup: &Setup<'_>) -> Result<Kernel> {
    let attributes = Attributes::of(setup, "Broadcast(0)", Subdivisions::Offsets(vec![0]))?;
    let request = move |mut inputs: Inputs| {
        let request = attributes.request(CollectiveKind::Broadcast { is_source: false }, &mut inputs, 0)?;
        let shape = Shape::checked(&integers(&inputs.tensor(3)?)?)?;
        Ok(CollectiveRequest { shape, ..request })
    };
    Ok(later(move |ctx, inputs, done| start(ctx, request(inputs), done)))
}

/// The input with another number of rows.
fn other_rows(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    let mut dims = dims.to_vec();
    match dims.first_mut() {
        Some(first) => *first = -1,
        None => return Err(invalid!("Shape must be at least rank 1 but is rank 0")),
    }
    Ok(vec![PartialShape::new(&dims)])
}
