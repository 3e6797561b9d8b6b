//! Concatenates tensors along an axis: Concat, ConcatV2, ConcatOffset.

use super::args::{around, to_axis};
use super::units::Unit;
use graph::{Node, Output, Scope, ShapeQuery};
use math::Pool;
use math::parallel::split_rows_mut;
use op::shapes::integers;
use op::{Grad, Grads, IntoGradient, Kernel, Op, Outputs, PLAIN, Setup, Value, many, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Concat(concat_dim: int32, values: N * T) -> output: T; N: int >= 2; T: type",
        shape: concat_shape,
        grad: Grad::Rule(concat_rule),
        kernel: concat_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ConcatV2(values: N * T, axis: Tidx) -> output: T; N: int >= 2; T: type; Tidx: {int32, int64} = int32",
        shape: concat_v2_shape,
        grad: Grad::Rule(concat_v2_rule),
        kernel: concat_v2_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ConcatOffset(concat_dim: int32, shape: N * shape_type) -> offset: N * shape_type; N: int >= 2; \
              shape_type: {int32, int64} = int32",
        shape: offset_shapes,
        grad: Grad::Stop,
        kernel: offset_kernel,
        facts: PLAIN,
    },
];

/// Tensors one after the other along an axis.
pub fn concat(scope: &Scope, values: &[Output], axis: i32) -> Output {
    if let [value] = values {
        return super::identity::identity(value);
    }
    let axis = super::constant::constant(scope, Tensor::scalar(axis));
    scope.op("ConcatV2").named("concat").inputs(values).input(&axis).output()
}

/// The offset of each of the tensors with these shapes in their concatenation.
pub fn concat_offset(axis: &Output, shapes: &[Output]) -> Vec<Output> {
    axis.scope().op("ConcatOffset").input(axis).inputs(shapes).node().outputs()
}

fn concat_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let inputs = op.all_inputs();
    let (axis, values) = (&inputs[0], &inputs[1..]);
    Ok(std::iter::once(None).chain(parts(axis, values, dy)).collect())
}

fn concat_v2_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let inputs = op.all_inputs();
    let (axis, values) = (&inputs[inputs.len() - 1], &inputs[..inputs.len() - 1]);
    let axis = match axis.dtype() {
        DType::I32 => axis.clone(),
        _ => axis.scope().op("Cast").input(axis).attr("DstT", DType::I32).output(),
    };
    Ok(parts(&axis, values, dy).into_iter().chain([None]).collect())
}

/// Each value gets back its own part.
fn parts(axis: &Output, values: &[Output], dy: &Output) -> Grads {
    let shapes = super::shape::shape_n(values);
    let begins = concat_offset(axis, &shapes);
    let part = |(begin, size): (&Output, &Output)| super::slice::slice(dy, begin, size).into_gradient();
    begins.iter().zip(&shapes).map(part).collect()
}

fn concat_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    joined_shape(&query.inputs[1..], query.constants[0].as_ref())
}

fn concat_v2_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let last = query.inputs.len() - 1;
    joined_shape(&query.inputs[..last], query.constants[last].as_ref())
}

/// The static shape of values one after the other.
pub(crate) fn joined_shape(values: &[PartialShape], axis: Option<&Tensor>) -> Result<Vec<PartialShape>> {
    let Some(rank) = values.iter().find_map(PartialShape::rank) else { return Ok(vec![PartialShape::unknown()]) };
    let axis = axis.map(integers).transpose()?.and_then(|axis| axis.first().copied());
    let Some(axis) = axis else { return Ok(vec![PartialShape::of_rank(rank)]) };
    let Some(axis) = to_axis(axis, rank) else { return Err(wrong_axis(axis, rank)) };
    let (mut merged, mut total) = (PartialShape::of_rank(rank), 0_i64);
    for value in values {
        let dims = value.dims();
        let along = dims.and_then(|dims| dims.get(axis).copied()).unwrap_or(-1);
        total = if total < 0 || along < 0 { -1 } else { total.saturating_add(along) };
        let mut rest: Vec<i64> = dims.map_or_else(|| vec![-1; rank], <[i64]>::to_vec);
        if let Some(dim) = rest.get_mut(axis) {
            *dim = -1;
        }
        merged = merged.merge(&PartialShape::new(&rest))?;
    }
    let mut dims = merged.dims().unwrap_or_default().to_vec();
    dims[axis] = total;
    Ok(vec![PartialShape::new(&dims)])
}

fn offset_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(query.inputs[1..].to_vec())
}

fn wrong_axis(axis: i64, rank: usize) -> status::Error {
    invalid!("ConcatOp : Expected concatenating dimensions in the range [{}, {rank}), but got {axis}", -(rank as i64))
}

fn concat_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| {
        let axis = inputs.tensor(0)?;
        let values = inputs.tensors_from(1)?;
        Ok(outputs![run_concat(ctx.pool(), "concat_dim", &axis, values)?])
    }))
}

fn concat_v2_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| {
        let count = inputs.len().saturating_sub(1);
        let values = inputs.tensors(0, count)?;
        let axis = inputs.tensor(count)?;
        Ok(outputs![run_concat(ctx.pool(), "axis", &axis, values)?])
    }))
}

fn run_concat(pool: &Pool, name: &str, axis: &Tensor, mut values: Vec<Tensor>) -> Result<Tensor> {
    if !(axis.shape().rank() == 0 || **axis.shape() == [1]) {
        return Err(invalid!("{name} tensor should be a scalar integer, but got shape {}", axis.shape()));
    }
    let asked = super::args::to_integer(axis)?;
    let Some(first) = values.first() else { return Err(invalid!("ConcatOp : No values to concatenate")) };
    let (dtype, mut shape) = (first.dtype(), first.shape().clone());
    let axis = match to_axis(asked, shape.rank()) {
        Some(axis) => axis,
        None if asked == 0 => 0,
        None => return Err(wrong_axis(asked, shape.rank())),
    };
    let mut total = 0_usize;
    for (index, value) in values.iter().enumerate() {
        check_joins(&shape, value.shape(), index, axis)?;
        total = total.saturating_add(value.shape()[axis]);
    }
    shape.dims_mut()[axis] = total;
    // The joined tensor may be one of its parts: empty ones add nothing.
    values.retain(|value| value.elements() > 0);
    if values.len() == 1
        && let Some(only) = values.pop()
    {
        return Ok(only);
    }
    joined(pool, dtype, shape, axis, &values)
}

fn check_joins(first: &Shape, other: &Shape, index: usize, axis: usize) -> Result<()> {
    if other.rank() == 0 {
        return Err(invalid!("ConcatOp : Can't concatenate scalars (use tf.stack instead)"));
    }
    if other.rank() != first.rank() {
        return Err(invalid!(
            "ConcatOp : Ranks of all input tensors should match: shape[0] = {first} vs. shape[{index}] = {other}"
        ));
    }
    match (0..first.rank()).find(|&dim| dim != axis && first[dim] != other[dim]) {
        Some(dim) => Err(invalid!(
            "ConcatOp : Dimension {dim} in both shapes must be equal: shape[0] = {first} vs. shape[{index}] = {other}"
        )),
        None => Ok(()),
    }
}

/// The values one after the other along an axis; `shape` is that of the whole.
pub(crate) fn joined(pool: &Pool, dtype: DType, shape: Shape, axis: usize, values: &[Tensor]) -> Result<Tensor> {
    shape.checked_elements()?;
    let [_, along, after] = around(&shape, axis);
    let row = along.checked_mul(after).unwrap_or(0);
    let mut out = Tensor::scratch_of(dtype, shape)?;
    if out.elements() > 0 {
        for_units!(dtype, E => {
            let parts = values.iter().map(|value| {
                let width = value.shape().get(axis).map_or(after, |dim| dim * after);
                Ok((E::of(value)?, width))
            });
            let parts = parts.collect::<Result<Vec<(&[E], usize)>>>()?;
            join_rows(pool, &parts, E::of_mut(&mut out)?, row);
        });
    }
    Ok(out)
}

/// Tensors of one shape as the rows of a tensor of `shape`; variants and handles too.
pub(crate) fn stacked(pool: &Pool, dtype: DType, values: &[Tensor], shape: Shape) -> Result<Tensor> {
    match dtype {
        DType::VARIANT | DType::RESOURCE => crate::data_structures::arithmetic::joined(dtype, shape, values),
        _ => {
            let row = |value: &Tensor| {
                let dims = [&[1], value.shape().dims()].concat();
                value.clone().reshaped(dims)
            };
            joined(pool, dtype, shape, 0, &values.iter().map(row).collect::<Result<Vec<_>>>()?)
        }
    }
}

/// Each row of `out` is a row of each part, one after the other; a part is its elements and the width of its rows.
pub(crate) fn join_rows<E: Unit>(pool: &Pool, parts: &[(&[E], usize)], out: &mut [E], row: usize) {
    if out.len() == row {
        return join_whole(pool, parts, out);
    }
    let cost = parts.len() as f32 * 4.0 + row as f32 * 0.1 * size_of::<E>() as f32;
    split_rows_mut(pool, cost, out, row, |first, chunk| {
        for (index, mut line) in chunk.chunks_mut(row).enumerate() {
            for &(part, width) in parts {
                let (head, rest) = line.split_at_mut(width);
                copy(&part[(first + index) * width..][..width], head);
                line = rest;
            }
        }
    });
}

/// With a single row the parts are copied whole, each by all threads.
fn join_whole<E: Unit>(pool: &Pool, parts: &[(&[E], usize)], mut out: &mut [E]) {
    for &(part, width) in parts {
        let (head, rest) = out.split_at_mut(width);
        math::parallel::split_mut(pool, 0.1 * size_of::<E>() as f32, head, |start, chunk| {
            chunk.clone_from_slice(&part[start..][..chunk.len()]);
        });
        out = rest;
    }
}

/// A call of `memcpy` takes longer than copying a few elements.
#[inline]
fn copy<E: Clone>(src: &[E], dst: &mut [E]) {
    if src.len() > 4 {
        return dst.clone_from_slice(src);
    }
    for (dst, src) in dst.iter_mut().zip(src) {
        *dst = src.clone();
    }
}

fn offset_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let wide = setup.dtype("shape_type")? == DType::I64;
    Ok(many(move |_, mut inputs| {
        let axis = inputs.tensor(0)?;
        run_offset(&axis, &inputs.tensors_from(1)?, wide)
    })
    .free())
}

fn run_offset(axis: &Tensor, shapes: &[Tensor], wide: bool) -> Result<Outputs> {
    if axis.shape().rank() != 0 {
        return Err(invalid!("Concat dim tensor should be a scalar integer, but got shape {}", axis.shape()));
    }
    if let Some(index) = shapes.iter().position(|shape| shape.shape().rank() != 1) {
        let found = shapes[index].shape();
        return Err(invalid!("input {} should be a vector, but got shape {found}", index + 1));
    }
    let shapes = shapes.iter().map(integers).collect::<Result<Vec<_>>>()?;
    let rank = shapes.first().map_or(0, Vec::len);
    let asked = super::args::to_integer(axis)?;
    let Some(axis) = to_axis(asked, rank) else {
        return Err(invalid!("Concat dim is out of range: {asked} vs. {rank}"));
    };
    let mut offset = 0_i64;
    let mut offsets = Outputs::new();
    for (index, shape) in shapes.iter().enumerate() {
        check_offset(&shapes[0], shape, index, axis)?;
        let mut begin = vec![0_i64; rank];
        begin[axis] = offset;
        offset = offset.wrapping_add(shape[axis]);
        offsets.push(Value::Tensor(match wide {
            true => Tensor::vector::<i64>(&begin),
            false => Tensor::vector::<i32>(&begin.iter().map(|&b| b as i32).collect::<Vec<_>>()),
        }));
    }
    Ok(offsets)
}

fn check_offset(first: &[i64], shape: &[i64], index: usize, axis: usize) -> Result<()> {
    let rank = first.len();
    if shape.len() != rank {
        return Err(invalid!("input {index} should contain {rank} elements, but got {}", shape.len()));
    }
    if (0..rank).any(|dim| dim != axis && shape[dim] != first[dim]) {
        let listed = |dims: &[i64]| dims.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
        return Err(invalid!(
            "All dimensions except {axis} must match. Input {index} has shape [{}] and doesn't match input 0 with \
             shape [{}].",
            listed(shape),
            listed(first)
        ));
    }
    Ok(())
}
