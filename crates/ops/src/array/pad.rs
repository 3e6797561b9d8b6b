//! Pads tensors with one value: Pad, PadV2.

use super::fill::filled;
use super::walk::{Walk, axes};
use graph::{Node, Output, ShapeQuery};
use math::Pool;
use op::shapes::integers;
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Pad(input: T, paddings: Tpaddings) -> output: T; T: type; Tpaddings: {int32, int64} = int32",
        shape: pad_shape,
        grad: Grad::Rule(pad_rule),
        kernel: pad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "PadV2(input: T, paddings: Tpaddings, constant_values: T) -> output: T; T: type; \
              Tpaddings: {int32, int64} = int32",
        shape: pad_shape,
        grad: Grad::Rule(pad_v2_rule),
        kernel: pad_v2_kernel,
        facts: PLAIN,
    },
];

/// `input` with zeros around it: `paddings[i]` holds the number of zeros before and after axis `i`.
pub fn pad(input: &Output, paddings: &Output) -> Output {
    input.scope().op("Pad").input(input).input(paddings).output()
}

/// As `pad`, with `value` around it.
pub fn pad_v2(input: &Output, paddings: &Output, value: &Output) -> Output {
    input.scope().op("PadV2").input(input).input(paddings).input(value).output()
}

fn pad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![inside(op, dy), NoGradient])
}

fn pad_v2_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![inside(op, dy), NoGradient, NoGradient])
}

/// The part of the gradient that is not border.
fn inside(op: &Node, dy: &Output) -> Output {
    let (x, paddings) = (op.input(0), op.input(1));
    let constant = |values: &[i32]| super::constant::constant(dy.scope(), Tensor::vector(values));
    let column = dy.scope().op("Slice").input(&paddings).input(&constant(&[0, 0])).input(&constant(&[-1, 1])).output();
    let begin = super::reshape::reshape(&column, &constant(&[-1]));
    super::slice::slice(dy, &begin, &super::shape::shape_as(&x, paddings.dtype()))
}

/// The shape of a padded tensor, as far as it is known.
pub(super) fn pad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let rank = query.inputs[0].rank().or(query.inputs[1].dim(0)).filter(|&rank| rank <= Shape::MAX_RANK);
    let Some(rank) = rank else { return Ok(vec![PartialShape::unknown()]) };
    let (Some(dims), Some(paddings)) = (query.inputs[0].dims(), query.constants[1].as_ref()) else {
        return Ok(vec![PartialShape::of_rank(rank)]);
    };
    let paddings = integers(paddings)?;
    let padded = |(&dim, around): (&i64, &[i64])| match (dim, around) {
        (0.., [before, after]) => dim.saturating_add(*before).saturating_add(*after),
        _ => -1,
    };
    let dims: Vec<i64> = dims.iter().zip(paddings.chunks(2)).map(padded).collect();
    Ok(vec![if dims.len() == rank { PartialShape::new(&dims) } else { PartialShape::of_rank(rank) }])
}

fn pad_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|ctx, input, paddings| {
        let zero = Tensor::zeros_of(input.dtype(), Shape::scalar())?;
        run_pad(ctx.pool(), input, &paddings, &zero)
    }))
}

fn pad_v2_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| {
        let (input, paddings, value) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        if value.shape().rank() != 0 {
            return Err(invalid!("constant_values must be a scalar. Found: {}", value.shape()));
        }
        Ok(outputs![run_pad(ctx.pool(), input, &paddings, &value)?])
    }))
}

fn run_pad(pool: &Pool, input: Tensor, paddings: &Tensor, value: &Tensor) -> Result<Tensor> {
    let paddings = pairs(&input, paddings, " ")?;
    if let Some([before, after]) = paddings.iter().find(|around| around.iter().any(|&count| count < 0)) {
        return Err(invalid!("Paddings must be non-negative: {before} {after}"));
    }
    padded(pool, input, &paddings, value)
}

/// The tensor with a border of `value`: the numbers of elements before and after each axis, none of them negative.
pub(super) fn padded(pool: &Pool, input: Tensor, paddings: &[[i64; 2]], value: &Tensor) -> Result<Tensor> {
    let grown = |(&dim, around): (&usize, &[i64; 2])| (dim as i64).saturating_add(around[0]).saturating_add(around[1]);
    let shape = Shape::checked(&input.shape().iter().zip(paddings).map(grown).collect::<Vec<_>>())?;
    if shape == *input.shape() {
        return Ok(input);
    }
    let strides = shape.strides();
    let start = strides.iter().zip(paddings).map(|(stride, around)| stride * around[0] as usize).sum();
    let mut out = filled(shape, value)?;
    if input.elements() > 0 {
        Walk::new(0, start, axes(input.shape(), &input.shape().strides(), &strides)).copy(pool, &input, &mut out)?;
    }
    Ok(out)
}

/// The padding before and after each axis, one pair per axis.
pub(super) fn pairs(input: &Tensor, paddings: &Tensor, between: &str) -> Result<Vec<[i64; 2]>> {
    let found = paddings.shape();
    if found.rank() != 2 || found[1] != 2 {
        return Err(invalid!("paddings must be a matrix with 2 columns: {found}"));
    }
    if found[0] != input.shape().rank() {
        return Err(invalid!(
            "The first dimension of paddings must be the rank of inputs{found}{between}{}",
            input.shape()
        ));
    }
    Ok(integers(paddings)?.as_chunks::<2>().0.to_vec())
}
