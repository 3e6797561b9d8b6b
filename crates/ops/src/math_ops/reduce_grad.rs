//! The gradient rules of reductions.

use super::arithmetic::maximum;
use super::axes::place_of;
use super::broadcast_grad::{constant, reshaped, shape_of};
use super::cast::cast;
use super::compare::equal;
use super::complex::conj;
use super::reduce::range;
use super::scan::{Scan, cumprod};
use graph::{Node, Output};
use op::shapes::integers;
use op::{Grads, NoGradient, grads};
use status::Result;
use tensor::{DType, Tensor};

/// Every element of the input gets the gradient of the sum that it is part of.
pub(super) fn sum_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![spread(op, dy)?, NoGradient])
}

pub(super) fn mean_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let spread = spread(op, dy)?;
    let (x, y) = (op.input(0), op.output(0));
    let count = match (x.shape().known(), y.shape().known()) {
        (Some(x), Some(y)) => spread.like((x.elements() / y.elements().max(1)) as f64),
        _ => {
            let size = |x: &Output| x.scope().op("Size").input(x).output();
            let results = size(&y);
            let one = results.like(1.0);
            cast(&(size(&x) / maximum(&results, &one)), spread.dtype())
        }
    };
    Ok(grads![spread / count, NoGradient])
}

/// Elements that reach the extreme share its gradient.
pub(super) fn extreme_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (x, axes) = (op.input(0), op.input(1));
    let (y, dy) = (with_reduced_axes(op, &op.output(0))?, with_reduced_axes(op, dy)?);
    let reaches = cast(&equal(&y, &x), dy.dtype());
    let count = x.scope().op("Sum").input(&reaches).input(&axes).attr("keep_dims", true).output();
    Ok(grads![&reaches / count * dy, NoGradient])
}

/// With y = |x|:  dx = dy x / y.
pub(super) fn norm_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (y, dy) = (with_reduced_axes(op, &op.output(0))?, with_reduced_axes(op, dy)?);
    Ok(grads![op.input(0) / (y / dy), NoGradient])
}

/// Every element gets the gradient times the product of all others: that of those before it times that of those
/// after it, which holds for zeros too.
pub(super) fn prod_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let x = op.input(0);
    let scope = x.scope();
    let shape = shape_of(&x);
    let rank = scope.op("Rank").input(&x).output();
    let flat = constant(scope, Tensor::vector(&[-1i32]));
    let axes = cast(&reshaped(&op.input(1), &flat), DType::I32);
    let reduced = (axes + &rank) % &rank;
    let others = scope.op("ListDiff").input(&range(scope, &rank)).input(&reduced).output();
    let zero = constant(scope, Tensor::scalar(0i32));
    let order = scope.op("ConcatV2").inputs([&reduced, &others]).input(&zero).output();
    let moved = scope.op("Transpose").input(&x).input(&order).output();
    let count = |axes: &Output| {
        let dims = scope.op("GatherV2").input(&shape).input(axes).input(&zero).output();
        scope.op("Prod").input(&dims).input(&zero).output()
    };
    let matrix_shape = scope.op("Pack").inputs([&count(&reduced), &count(&others)]).output();
    let matrix = reshaped(&moved, &matrix_shape);
    let before = cumprod(&matrix, &zero, Scan { exclusive: true, reverse: false });
    let after = cumprod(&matrix, &zero, Scan { exclusive: true, reverse: true });
    let rest = reshaped(&(conj(&before) * conj(&after)), &shape_of(&moved));
    let back = scope.op("InvertPermutation").input(&order).output();
    let rest = scope.op("Transpose").input(&rest).input(&back).output();
    let dx = spread(op, dy)? * rest;
    Ok(grads![reshaped(&dx, &shape), NoGradient])
}

/// `dy`, repeated along the axes that `op` reduced.
fn spread(op: &Node, dy: &Output) -> Result<Output> {
    let shape = shape_of(&op.input(0));
    Ok(dy.scope().op("BroadcastTo").input(&with_reduced_axes(op, dy)?).input(&shape).output())
}

/// `value`, of the shape of the result of `op`, with the reduced axes as axes of length one.
fn with_reduced_axes(op: &Node, value: &Output) -> Result<Output> {
    if op.attr_bool("keep_dims")? {
        return Ok(value.clone());
    }
    let (x, axes) = (op.input(0), op.input(1));
    let (known_axes, known_shape) = (axes.constant(), x.shape());
    let shape = match (known_axes, known_shape.dims()) {
        (Some(axes), Some(dims)) if dims.iter().all(|&dim| (0..=i64::from(i32::MAX)).contains(&dim)) => {
            let rank = dims.len();
            let mut dims: Vec<i32> = dims.iter().map(|&dim| dim as i32).collect();
            for place in integers(&axes)?.into_iter().filter_map(|axis| place_of(axis, rank)) {
                dims[place] = 1;
            }
            constant(x.scope(), Tensor::vector(&dims))
        }
        _ => kept_shape(&x, &axes),
    };
    Ok(reshaped(value, &shape))
}

/// The shape of `x` with ones at `axes`, found when the graph runs.
fn kept_shape(x: &Output, axes: &Output) -> Output {
    let scope = x.scope();
    let shape = shape_of(x);
    let rank = scope.op("Rank").input(x).output();
    let flat = constant(scope, Tensor::vector(&[-1i32]));
    let axes = (cast(&reshaped(axes, &flat), DType::I32) + &rank) % &rank;
    let one = constant(scope, Tensor::scalar(1i32));
    let ones = scope.op("Fill").input(&shape_of(&axes)).input(&one).output();
    let indices = [&range(scope, &rank), &axes];
    scope.op("DynamicStitch").inputs(indices).inputs([&shape, &ones]).output()
}
