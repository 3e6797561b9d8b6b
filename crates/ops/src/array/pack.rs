//! Ops that add or remove an axis: Pack, Unpack, ParallelConcat.

use super::args::around;
use super::concat::joined;
use super::split::piece;
use graph::{AttrValue, Node, Output, Scope, ShapeQuery};
use op::shapes::{attr_shape, unchanged};
use op::{Grad, Gradient, Grads, Kernel, Op, Outputs, PLAIN, Setup, Value, binary, grads, many, outputs, source};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Pack(values: N * T) -> output: T; N: int >= 1; T: type; axis: int = 0",
        shape: pack_shape,
        grad: Grad::Rule(pack_rule),
        kernel: pack_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Unpack(value: T) -> output: num * T; num: int >= 0; T: type; axis: int = 0",
        shape: unpack_shape,
        grad: Grad::Rules(unpack_rule),
        kernel: unpack_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ParallelConcat(values: N * T) -> output: T; N: int >= 1; T: type; shape: shape",
        shape: attr_shape,
        grad: Grad::Unknown,
        kernel: parallel_concat_kernel,
        facts: PLAIN,
    },
    // The parts into which TensorFlow's own runtime takes ParallelConcat apart.
    Op {
        def: "_ParallelConcatStart() -> output: dtype; shape: shape; dtype: type; stateful",
        shape: attr_shape,
        grad: Grad::Unknown,
        kernel: concat_start_kernel,
        facts: PLAIN,
    },
    Op {
        def: "_ParallelConcatUpdate(value: T, update: T) -> output: T; T: type; loc: int",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: concat_update_kernel,
        facts: PLAIN,
    },
];

/// Tensors of one shape as the steps of a new axis.
pub fn pack(scope: &Scope, values: &[Output], axis: i64) -> Output {
    scope.op("Pack").named("stack").inputs(values).attr("axis", axis).output()
}

/// The `num` steps of an axis, each a tensor without it.
pub fn unpack(value: &Output, num: usize, axis: i64) -> Vec<Output> {
    value.scope().op("Unpack").named("unstack").input(value).attr("num", num).attr("axis", axis).node().outputs()
}

fn pack_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let parts = unpack(dy, op.all_inputs().len(), op.attr_int("axis")?);
    Ok(parts.into_iter().map(|part| Some(Gradient::Dense(part))).collect())
}

fn unpack_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let whole = |(index, dy): (usize, &Option<Output>)| {
        dy.clone().unwrap_or_else(|| super::fill::zeros_like(&op.output(index)))
    };
    let dys: Vec<Output> = dys.iter().enumerate().map(whole).collect();
    Ok(grads![pack(op.scope(), &dys, op.attr_int("axis")?)])
}

fn axis_of(query: &ShapeQuery<'_>) -> Result<i64> {
    match query.attr("axis")? {
        AttrValue::Int(axis) => Ok(*axis),
        _ => Err(invalid!("attr 'axis' is not an int")),
    }
}

/// The axis that a number means, from `-rank` to `rank - 1`.
fn in_range(axis: i64, rank: usize) -> Result<usize> {
    super::args::to_axis(axis, rank).ok_or_else(|| invalid!("axis = {axis} not in [-{rank}, {rank})"))
}

fn pack_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let mut merged = PartialShape::unknown();
    for value in query.inputs {
        merged = merged.merge(value)?;
    }
    let Some(dims) = merged.dims() else { return Ok(vec![PartialShape::unknown()]) };
    let axis = in_range(axis_of(query)?, dims.len() + 1)?;
    let mut dims = dims.to_vec();
    dims.insert(axis, query.inputs.len() as i64);
    Ok(vec![PartialShape::new(&dims)])
}

fn unpack_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown(); query.outputs]) };
    let axis = in_range(axis_of(query)?, dims.len())?;
    let mut dims = dims.to_vec();
    let size = dims.remove(axis);
    if size >= 0 && size != query.outputs as i64 {
        return Err(invalid!("Dimension must be {} but is {size}", query.outputs));
    }
    Ok(vec![PartialShape::new(&dims); query.outputs])
}

fn pack_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let axis = setup.int("axis")?;
    Ok(many(move |ctx, mut inputs| {
        let values = inputs.tensors_from(0)?;
        let Some(first) = values.first() else { return Err(invalid!("Pack needs at least one value")) };
        let mut shape = first.shape().clone();
        let rank = shape.rank() + 1;
        let at = in_range(axis, rank)?;
        check_alike(&values)?;
        shape.dims_mut().insert(at, values.len());
        if values.len() == 1 {
            return Ok(outputs![first.clone().reshaped(shape)?]);
        }
        // The steps of the new axis are whole inner blocks, so a value joins as if it had the axis, of length one.
        let with_axis = |value: Tensor| {
            let mut shape = value.shape().clone();
            shape.dims_mut().insert(at, 1);
            value.reshaped(shape)
        };
        let dtype = first.dtype();
        let values = values.into_iter().map(with_axis).collect::<Result<Vec<_>>>()?;
        Ok(outputs![joined(ctx.pool(), dtype, shape, at, &values)?])
    }))
}

fn check_alike(values: &[Tensor]) -> Result<()> {
    let first = values[0].shape();
    match values.iter().position(|value| value.shape() != first) {
        Some(index) => Err(invalid!(
            "Shapes of all inputs must match: values[0].shape = {first} != values[{index}].shape = {}",
            values[index].shape()
        )),
        None => Ok(()),
    }
}

fn unpack_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (axis, count) = (setup.int("axis")?, setup.output_types().len());
    Ok(many(move |ctx, mut inputs| {
        let value = inputs.tensor(0)?;
        let rank = value.shape().rank();
        let at = super::args::to_axis(axis, rank)
            .ok_or_else(|| invalid!("axis = {axis} not in [{}, {rank})", -(rank as i64)))?;
        let around = around(value.shape(), at);
        if around[1] != count {
            return Err(invalid!("Input shape axis {at} must equal {count}, got shape {}", value.shape()));
        }
        let mut shape: Shape = value.shape().clone();
        shape.dims_mut().remove(at);
        let step = |start| piece(ctx.pool(), &value, around, start, shape.clone()).map(Value::Tensor);
        (0..count).map(step).collect::<Result<Outputs>>()
    }))
}

fn parallel_concat_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let wanted = setup.shape("shape")?;
    Ok(many(move |ctx, mut inputs| {
        let values = inputs.tensors_from(0)?;
        let Some(first) = values.first() else { return Err(invalid!("ParallelConcat needs at least one value")) };
        check_alike(&values)?;
        if first.shape().first() != Some(&1) {
            return Err(invalid!("Size of first dimension must be 1, got shape {}", first.shape()));
        }
        let mut shape = first.shape().clone();
        shape.dims_mut()[0] = values.len();
        if !wanted.accepts(&shape) {
            return Err(invalid!("shape attribute {wanted} does not fit the values' shape {shape}"));
        }
        Ok(outputs![joined(ctx.pool(), first.dtype(), shape, 0, &values)?])
    }))
}

fn concat_start_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, shape) = (setup.dtype("dtype")?, setup.shape("shape")?);
    let shape = shape.known().ok_or_else(|| invalid!("The shape {shape} is not fully defined"))?;
    Ok(source(move |_| Tensor::zeros_of(dtype, shape.clone())))
}

/// The tensor with one of its rows replaced.
fn concat_update_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let loc = setup.int("loc")?;
    Ok(binary(move |_, mut value, update| {
        let Some(&rows) = value.shape().first() else { return Err(invalid!("value should be at least rank 1.")) };
        if rows as i64 <= loc {
            return Err(invalid!("0th dimension of value = {rows} must be greater than loc_ = {loc}"));
        }
        let fits = value.shape().rank() == update.shape().rank() && value.shape()[1..] == update.shape()[1..];
        if !fits {
            return Err(invalid!("value and update shape doesn't match {} vs. {}", value.shape(), update.shape()));
        }
        if update.shape()[0] != 1 {
            return Err(invalid!("update shape doesn't match: {}", update.shape()));
        }
        let row = usize::try_from(loc).unwrap_or(rows - 1); // a negative place counts from the last row
        match value.buffer().is_some() {
            true => {
                let bytes = update.buffer().map(|buffer| buffer.bytes()).unwrap_or_default();
                value.bytes_mut()?[row * bytes.len()..][..bytes.len()].copy_from_slice(bytes);
            }
            false => {
                let strings = update.strings()?;
                value.strings_mut()?[row * strings.len()..][..strings.len()].clone_from_slice(strings);
            }
        }
        Ok(value)
    }))
}
