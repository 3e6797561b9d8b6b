//! TensorScatterUpdate, Add, Sub, Max, Min: a copy of a tensor with slices combined into it.

use super::gather_nd::gather_nd;
use super::nodes;
use super::scatter_nd::{Apply, Combine, Targets, add_rule, combining, ignores_bad_indices, scatter_nd};
use graph::{Node, Output};
use op::shapes::unchanged;
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, grads, many, outputs};
use status::{Result, invalid};
use tensor::{Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "TensorScatterUpdate(tensor: T, indices: Tindices, updates: T) -> output: T; T: type; \
              Tindices: {int16, int32, int64, uint16}; bad_indices_policy: string = \"\"",
        shape: unchanged,
        grad: Grad::Rule(update_rule),
        kernel: |setup| kernel(setup, Combine::Assign),
        facts: PLAIN,
    },
    Op {
        def: "TensorScatterAdd(tensor: T, indices: Tindices, updates: T) -> output: T; T: type; \
              Tindices: {int32, int64}; bad_indices_policy: string = \"\"",
        shape: unchanged,
        grad: Grad::Rule(add_rule),
        kernel: |setup| kernel(setup, Combine::Add),
        facts: PLAIN,
    },
    Op {
        def: "TensorScatterSub(tensor: T, indices: Tindices, updates: T) -> output: T; T: type; \
              Tindices: {int32, int64}; bad_indices_policy: string = \"\"",
        shape: unchanged,
        grad: Grad::Rule(sub_rule),
        kernel: |setup| kernel(setup, Combine::Sub),
        facts: PLAIN,
    },
    Op {
        def: "TensorScatterMax(tensor: T, indices: Tindices, updates: T) -> output: T; T: type; \
              Tindices: {int32, int64}; bad_indices_policy: string = \"\"",
        shape: unchanged,
        grad: Grad::Rule(extreme_rule),
        kernel: |setup| kernel(setup, Combine::Max),
        facts: PLAIN,
    },
    Op {
        def: "TensorScatterMin(tensor: T, indices: Tindices, updates: T) -> output: T; T: type; \
              Tindices: {int32, int64}; bad_indices_policy: string = \"\"",
        shape: unchanged,
        grad: Grad::Rule(extreme_rule),
        kernel: |setup| kernel(setup, Combine::Min),
        facts: PLAIN,
    },
];

/// `tensor` with the slices that `indices` name replaced by `updates`.
pub fn tensor_scatter_update(tensor: &Output, indices: &Output, updates: &Output) -> Output {
    tensor.scope().op("TensorScatterUpdate").input(tensor).input(indices).input(updates).output()
}

/// `tensor` with `updates` added to the slices that `indices` name.
pub fn tensor_scatter_add(tensor: &Output, indices: &Output, updates: &Output) -> Output {
    tensor.scope().op("TensorScatterAdd").input(tensor).input(indices).input(updates).output()
}

/// `tensor` with `updates` subtracted from the slices that `indices` name.
pub fn tensor_scatter_sub(tensor: &Output, indices: &Output, updates: &Output) -> Output {
    tensor.scope().op("TensorScatterSub").input(tensor).input(indices).input(updates).output()
}

/// The larger of `tensor` and `updates` in the slices that `indices` name.
pub fn tensor_scatter_max(tensor: &Output, indices: &Output, updates: &Output) -> Output {
    tensor.scope().op("TensorScatterMax").input(tensor).input(indices).input(updates).output()
}

/// The smaller of `tensor` and `updates` in the slices that `indices` name.
pub fn tensor_scatter_min(tensor: &Output, indices: &Output, updates: &Output) -> Output {
    tensor.scope().op("TensorScatterMin").input(tensor).input(indices).input(updates).output()
}

/// Elements that were replaced have no gradient.
fn update_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (indices, updates) = (op.input(1), op.input(2));
    let kept = tensor_scatter_update(dy, &indices, &nodes::zeros_like(&updates));
    Ok(grads![kept, NoGradient, gather_nd(dy, &indices)])
}

fn sub_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![dy.clone(), NoGradient, -gather_nd(dy, &op.input(1))])
}

/// The elements that have the extreme value share its gradient.
fn extreme_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [tensor, indices, updates] = op.inputs()?;
    let output = op.output(0);
    let won = |a: &Output, b: &Output| nodes::cast(&nodes::pair("Equal", a, b), dy.dtype());
    let here = won(&tensor, &output);
    let there = won(&updates, &gather_nd(&output, &indices));
    let winners = &here + scatter_nd(&indices, &there, &nodes::shape(&tensor, indices.dtype()));
    Ok(grads![dy * &here / &winners, NoGradient, gather_nd(&(dy / &winners), &indices) * there])
}

fn kernel(setup: &Setup<'_>, combine: Combine) -> Result<Kernel> {
    let ignore = ignores_bad_indices(setup)?;
    combining(setup, combine, |apply| {
        many(move |ctx, mut inputs| {
            let (tensor, indices, updates) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
            Ok(outputs![run(ctx, tensor, &indices, &updates, ignore, apply)?])
        })
    })
}

fn run(
    ctx: &Ctx<'_>,
    mut tensor: Tensor,
    indices: &Tensor,
    updates: &Tensor,
    ignore: bool,
    apply: Apply,
) -> Result<Tensor> {
    check(&tensor, indices, updates)?;
    let targets = Targets::new(tensor.shape(), indices, updates, ignore)?;
    apply(ctx, &mut tensor, &targets, updates)?;
    Ok(tensor)
}

fn check(tensor: &Tensor, indices: &Tensor, updates: &Tensor) -> Result<()> {
    let (shape, places, slices) = (tensor.shape(), indices.shape(), updates.shape());
    if places.rank() == 0 {
        return Err(invalid!("Indices shape must have rank at least one. Found:{places}"));
    }
    if slices.rank() == 0 {
        return Err(invalid!("Updates shape must have rank at least one. Found:{slices}"));
    }
    let (given, wanted) = (updates.elements(), indices.elements());
    if (given, wanted) != (0, 0) && (given == 0 || wanted == 0 || tensor.elements() == 0) {
        return Err(invalid!("Indices and updates specified for empty output shape"));
    }
    check_dimensions(shape, places, slices)
}

fn check_dimensions(shape: &Shape, places: &Shape, slices: &Shape) -> Result<()> {
    let outer = places.rank() - 1;
    if slices.rank() < outer || places[..outer] != slices[..outer] {
        return Err(invalid!(
            "Outer dimensions of indices and update must match. Indices shape: {places}, updates shape:{slices}"
        ));
    }
    let depth = places[outer];
    if depth > shape.rank() || slices.rank() - outer != shape.rank() - depth {
        return Err(invalid!(
            "Inner dimensions of output shape must match inner dimensions of updates shape. Output: {shape} updates: {slices}"
        ));
    }
    if slices[outer..] != shape[depth..] {
        return Err(invalid!(
            "The inner {} dimensions of output.shape={shape} must match the inner {} dimensions of updates.shape={slices}",
            shape.rank() - depth,
            slices.rank() - outer
        ));
    }
    Ok(())
}
