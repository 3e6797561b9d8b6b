//! Splits a tensor along an axis: Split, SplitV.

use super::args::{around, to_axis, to_integer};
use super::walk::{Axis, Walk};
use graph::{Node, Output, ShapeQuery};
use math::Pool;
use op::shapes::integers;
use op::{Grad, Gradient, Grads, Kernel, Op, Outputs, PLAIN, Setup, Value, many};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Split(split_dim: int32, value: T) -> output: num_split * T; num_split: int >= 1; T: type",
        shape: split_shape,
        grad: Grad::Rules(split_rule),
        kernel: split_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SplitV(value: T, size_splits: Tlen, split_dim: int32) -> output: num_split * T; num_split: int >= 1; \
              T: type; Tlen: {int8, int32, int64} = int64",
        shape: split_v_shape,
        grad: Grad::Rules(split_v_rule),
        kernel: split_v_kernel,
        facts: PLAIN,
    },
];

/// `count` equal pieces of `value` along an axis.
pub fn split(value: &Output, axis: i32, count: usize) -> Vec<Output> {
    let axis = super::constant::constant(value.scope(), Tensor::scalar(axis));
    value.scope().op("Split").named("split").input(&axis).input(value).attr("num_split", count).node().outputs()
}

/// Splits `value` along an axis into pieces of these sizes; one size may be -1 and is inferred.
pub fn split_v(value: &Output, sizes: &[i64], axis: i32) -> Vec<Output> {
    let scope = value.scope();
    let size_splits = super::constant::constant(scope, Tensor::vector::<i64>(sizes));
    let axis = super::constant::constant(scope, Tensor::scalar(axis));
    let node = scope.op("SplitV").named("split").input(value).input(&size_splits).input(&axis);
    node.attr("num_split", sizes.len()).node().outputs()
}

fn split_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    Ok(vec![None, Some(rejoined(op, &op.input(0), dys))])
}

fn split_v_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    Ok(vec![Some(rejoined(op, &op.input(2), dys)), None, None])
}

/// Concatenates the gradients of the pieces, with zeros where there are none.
fn rejoined(op: &Node, axis: &Output, dys: &[Option<Output>]) -> Gradient {
    let whole = |(index, dy): (usize, &Option<Output>)| {
        dy.clone().unwrap_or_else(|| super::fill::zeros_like(&op.output(index)))
    };
    let dys: Vec<Output> = dys.iter().enumerate().map(whole).collect();
    Gradient::Dense(match dys.as_slice() {
        [only] => only.clone(),
        _ => op.scope().op("ConcatV2").inputs(&dys).input(axis).output(),
    })
}

fn split_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let value = &query.inputs[1];
    let axis = query.constants[0].as_ref().map(to_integer).transpose()?;
    let (Some(dims), Some(asked)) = (value.dims(), axis) else { return Ok(unknown_pieces(value, query.outputs)) };
    let axis = to_axis(asked, dims.len()).ok_or_else(|| wrong_axis(asked, dims.len()))?;
    let mut piece = dims.to_vec();
    if piece[axis] >= 0 {
        check_divides(axis, piece[axis] as usize, query.outputs)?;
        piece[axis] /= query.outputs as i64;
    }
    Ok(vec![PartialShape::new(&piece); query.outputs])
}

fn split_v_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let value = &query.inputs[0];
    let axis = query.constants[2].as_ref().map(to_integer).transpose()?;
    let (Some(dims), Some(asked)) = (value.dims(), axis) else { return Ok(unknown_pieces(value, query.outputs)) };
    let axis = to_axis(asked, dims.len()).ok_or_else(|| wrong_axis(asked, dims.len()))?;
    let sizes = match query.constants[1].as_ref().map(integers).transpose()? {
        Some(sizes) if dims[axis] >= 0 => {
            resolved(&sizes, dims[axis] as usize)?.into_iter().map(|size| size as i64).collect()
        }
        Some(sizes) => sizes,
        None => vec![-1; query.outputs],
    };
    let piece = |&size: &i64| {
        let mut dims = dims.to_vec();
        dims[axis] = size;
        PartialShape::new(&dims)
    };
    Ok(sizes.iter().map(piece).collect())
}

fn unknown_pieces(value: &PartialShape, count: usize) -> Vec<PartialShape> {
    vec![value.rank().map_or(PartialShape::unknown(), PartialShape::of_rank); count]
}

fn wrong_axis(axis: i64, rank: usize) -> status::Error {
    invalid!("-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {axis}")
}

fn check_divides(axis: usize, size: usize, count: usize) -> Result<()> {
    if count == 0 {
        return Err(invalid!("Number of ways to split should be > 0, but got {count}"));
    }
    if !size.is_multiple_of(count) {
        return Err(invalid!(
            "Number of ways to split should evenly divide the split dimension, but got split_dim {axis} (size = \
             {size}) and num_split {count}"
        ));
    }
    Ok(())
}

fn split_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let count = setup.output_types().len();
    Ok(many(move |ctx, mut inputs| {
        let (axis, value) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if axis.shape().rank() != 0 {
            return Err(invalid!("split_dim must be a scalar but has rank {}", axis.shape().rank()));
        }
        let (asked, rank) = (to_integer(&axis)?, value.shape().rank());
        let axis = to_axis(asked, rank).ok_or_else(|| wrong_axis(asked, rank))?;
        let size = value.shape()[axis];
        check_divides(axis, size, count)?;
        pieces(ctx.pool(), &value, axis, &vec![size / count; count])
    }))
}

fn split_v_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let count = setup.output_types().len();
    Ok(many(move |ctx, mut inputs| {
        let (value, sizes, axis) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        if axis.elements() != 1 {
            return Err(invalid!("split_dim_tensor must have exactly one element."));
        }
        if sizes.shape().rank() != 1 || sizes.elements() != count {
            return Err(invalid!(
                "size of the split_tensor must be 1-D and have the same elements as outputs got {} -D and {} elements",
                sizes.shape().rank(),
                sizes.elements()
            ));
        }
        let (asked, rank) = (to_integer(&axis)?, value.shape().rank());
        let axis = to_axis(asked, rank).ok_or_else(|| wrong_axis(asked, rank))?;
        let sizes = resolved(&integers(&sizes)?, value.shape()[axis])?;
        pieces(ctx.pool(), &value, axis, &sizes)
    }))
}

/// The sizes of all pieces of `whole`, with -1 replaced.
fn resolved(sizes: &[i64], whole: usize) -> Result<Vec<usize>> {
    let size = whole as i64;
    if let [only] = sizes
        && *only != -1
        && *only != size
    {
        return Err(invalid!(
            "If there is only one output, it must have the same size as the input. Input size: {size} output size: \
             {only}"
        ));
    }
    if sizes.iter().filter(|&&size| size == -1).count() > 1 {
        return Err(invalid!("There can only be one -1 in the input."));
    }
    let total = sizes.iter().filter(|&&size| size != -1).fold(0_i64, |total, &size| total.saturating_add(size));
    let open = sizes.contains(&-1);
    if !(total == size || open && total < size) {
        return Err(invalid!(
            "Determined shape must either match input shape along split_dim exactly if fully specified, or be less \
             than the size of the input along split_dim if not fully specified.  Got: {total}"
        ));
    }
    let resolve = |(index, &asked): (usize, &i64)| {
        let found = if asked == -1 { size.saturating_sub(total) } else { asked };
        usize::try_from(found).map_err(|_| invalid!("Split size at index {index} must be >= 0. Got: {found}"))
    };
    let sizes = sizes.iter().enumerate().map(resolve).collect::<Result<Vec<_>>>()?;
    Ok(sizes)
}

/// Pieces of these sizes, which add up to the axis; views if the pieces are runs of elements.
pub(crate) fn pieces(pool: &Pool, value: &Tensor, axis: usize, sizes: &[usize]) -> Result<Outputs> {
    let [before, along, after] = around(value.shape(), axis);
    let mut start = 0;
    let mut outputs = Outputs::new();
    for &size in sizes {
        let mut shape: Shape = value.shape().clone();
        shape.dims_mut()[axis] = size;
        outputs.push(Value::Tensor(piece(pool, value, [before, along, after], start, shape)?));
        start += size;
    }
    Ok(outputs)
}

/// Steps of an axis from `start` on, as many as make `shape`; `around` is how many elements lie before the axis, on it
/// and after it.
pub(crate) fn piece(pool: &Pool, value: &Tensor, around: [usize; 3], start: usize, shape: Shape) -> Result<Tensor> {
    let [before, along, after] = around;
    if before == 1 || shape.elements() == 0 {
        let first = if shape.elements() == 0 { 0 } else { start * after };
        return value.slice_elements(first, shape);
    }
    let width = shape.elements() / before;
    let mut out = Tensor::scratch_of(value.dtype(), shape)?;
    let rows = Axis { len: before, src: (along * after) as isize, dst: width };
    let run = Axis { len: width, src: 1, dst: 1 };
    Walk::new(start * after, 0, [rows, run]).copy(pool, value, &mut out)?;
    Ok(out)
}
