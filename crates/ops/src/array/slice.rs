//! Slices of tensors: Slice.

use super::walk::{Walk, axes};
use graph::{Node, Output, ShapeQuery};
use math::Pool;
use op::shapes::integers;
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Peek, Setup, grads, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "Slice(input: T, begin: Index, size: Index) -> output: T; T: type; Index: {int32, int64}",
    shape: slice_shape,
    grad: Grad::Rule(slice_rule),
    kernel: slice_kernel,
    facts: PLAIN,
}];

/// The block of `input` that starts at `begin` and has the dimensions in `size`; -1 is all that is left.
pub fn slice(input: &Output, begin: &Output, size: &Output) -> Output {
    input.scope().op("Slice").input(input).input(begin).input(size).output()
}

/// The gradient of the block, with zeros around it.
fn slice_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [input, begin, _] = op.inputs()?;
    let index = begin.dtype();
    let (whole, part) = (super::shape::shape_as(&input, index), super::shape::shape_as(&op.output(0), index));
    let after = &whole - &part - &begin;
    let paddings = super::pack::pack(dy.scope(), &[begin, after], 1);
    Ok(grads![super::pad::pad(dy, &paddings), NoGradient, NoGradient])
}

fn slice_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let rank = query.inputs[0].rank().or(query.inputs[1].dim(0)).or(query.inputs[2].dim(0));
    let Some(rank) = rank.filter(|&rank| rank <= Shape::MAX_RANK) else { return Ok(vec![PartialShape::unknown()]) };
    let vector = |input: usize| query.constants[input].as_ref().map(integers).transpose();
    let (Some(begin), Some(size)) = (vector(1)?, vector(2)?) else { return Ok(vec![PartialShape::of_rank(rank)]) };
    match query.inputs[0].known() {
        Some(input) => Ok(vec![region(&input, &begin, &size)?.1.into()]),
        None => Ok(vec![PartialShape::new(&size)]),
    }
}

fn slice_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| {
        let (input, begin, size) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        Ok(outputs![run_slice(ctx.pool(), input, &begin, &size)?])
    })
    .with_work(work))
}

/// The number of elements of the slice, not of the input; zero if the slice is a view.
pub(crate) fn work(inputs: &Peek<'_>) -> usize {
    let vector = |index| inputs.tensor(index).and_then(|vector| integers(vector).ok());
    let (Some(whole), Some(begin), Some(size)) = (inputs.shape(0), vector(1), vector(2)) else { return usize::MAX };
    let Ok((_, part)) = region(&whole, &begin, &size) else { return 0 };
    let is_plain = inputs.tensor(0).is_some_and(|input| input.dtype().size() > 0);
    if part == whole || (is_plain && is_run(&whole, &part)) { 0 } else { part.elements() }
}

fn run_slice(pool: &Pool, input: Tensor, begin: &Tensor, size: &Tensor) -> Result<Tensor> {
    let rank = input.shape().rank();
    let fits = |tensor: &Tensor| tensor.shape().rank() == 1 && tensor.elements() == rank;
    if !fits(begin) || !fits(size) {
        return Err(invalid!(
            "Expected begin and size arguments to be 1-D tensors of size {rank}, but got shapes {} and {} instead.",
            begin.shape(),
            size.shape()
        ));
    }
    let (starts, shape) = region(input.shape(), &integers(begin)?, &integers(size)?)?;
    block(pool, input, &starts, shape)
}

/// The checked start and shape of the block.
fn region(input: &Shape, begin: &[i64], size: &[i64]) -> Result<(Vec<usize>, Shape)> {
    if begin.len() != input.rank() || size.len() != input.rank() {
        let rank = input.rank();
        return Err(invalid!("Expected begin and size arguments to be 1-D tensors of size {rank}"));
    }
    let mut starts = Vec::with_capacity(input.rank());
    let mut shape = Shape::scalar();
    for (axis, &whole) in input.iter().enumerate() {
        let (dim, b) = (whole as i64, begin[axis]);
        let s = if size[axis] == -1 { dim.saturating_sub(b) } else { size[axis] };
        if dim == 0 && !(b == 0 && s == 0) {
            return Err(invalid!(
                "Expected begin[{axis}] == 0 (got {b}) and size[{axis}] == 0 (got {s}) when \
                 input.dim_size({axis}) == 0"
            ));
        }
        if !(0..=dim).contains(&b) {
            return Err(invalid!("Expected begin[{axis}] in [0, {dim}], but got {b}"));
        }
        if !(0..=dim - b).contains(&s) {
            return Err(invalid!("Expected size[{axis}] in [0, {}], but got {s}", dim - b));
        }
        starts.push(b as usize);
        shape.dims_mut().push(s as usize);
    }
    Ok((starts, shape))
}

/// The block at `starts`, which are in range; a view if it is one run of elements.
pub(crate) fn block(pool: &Pool, input: Tensor, starts: &[usize], shape: Shape) -> Result<Tensor> {
    let strides = input.shape().strides();
    let offset = starts.iter().zip(&strides).map(|(start, stride)| start * stride).sum();
    if shape == *input.shape() {
        return Ok(input);
    }
    if shape.elements() == 0 {
        return Tensor::zeros_of(input.dtype(), shape);
    }
    if is_run(input.shape(), &shape) {
        return input.slice_elements(offset, shape);
    }
    let mut out = Tensor::scratch_of(input.dtype(), &shape)?;
    Walk::new(offset, 0, axes(&shape, &strides, &shape.strides())).copy(pool, &input, &mut out)?;
    Ok(out)
}

/// Whether a block of `part` in `whole` is one run of elements: behind the first axis on which it has more than one, it
/// takes everything.
pub(crate) fn is_run(whole: &Shape, part: &Shape) -> bool {
    let first = part.iter().position(|&dim| dim != 1).unwrap_or(part.rank());
    (first + 1..part.rank()).all(|axis| part[axis] == whole[axis])
}
