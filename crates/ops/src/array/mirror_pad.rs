//! Padding that mirrors the values it surrounds: MirrorPad, MirrorPadGrad.

use super::pad::{pad_shape, pairs};
use super::segments::{Segment, copy_segments};
use graph::{AttrValue, Node, Output, ShapeQuery};
use math::Pool;
use math::function::Number;
use op::shapes::integers;
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads};
use status::{Result, invalid, unimplemented_op};
use tensor::{Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MirrorPad(input: T, paddings: Tpaddings) -> output: T; T: type; Tpaddings: {int32, int64} = int32; \
              mode: {\"REFLECT\", \"SYMMETRIC\"}",
        shape: pad_shape,
        grad: Grad::Rule(mirror_pad_rule),
        kernel: mirror_pad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MirrorPadGrad(input: T, paddings: Tpaddings) -> output: T; T: type; Tpaddings: {int32, int64} = int32; \
              mode: {\"REFLECT\", \"SYMMETRIC\"}",
        shape: grad_shape,
        grad: Grad::Rule(mirror_pad_grad_rule),
        kernel: mirror_pad_grad_kernel,
        facts: PLAIN,
    },
];

/// Most dimensions these ops take.
const MAX_RANK: usize = 5;

/// `input` with a mirrored border: `mode` is `REFLECT` (the edge is not repeated) or `SYMMETRIC` (it is).
pub fn mirror_pad(input: &Output, paddings: &Output, mode: &str) -> Output {
    input.scope().op("MirrorPad").input(input).input(paddings).attr("mode", mode).output()
}

fn mode_of(op: &Node) -> Result<String> {
    match op.attr("mode")? {
        AttrValue::String(mode) => Ok(String::from_utf8_lossy(&mode).into_owned()),
        _ => Err(invalid!("mode must be either REFLECT or SYMMETRIC.")),
    }
}

fn mirror_pad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let node = dy.scope().op("MirrorPadGrad").input(dy).input(&op.input(1)).attr("mode", mode_of(op)?);
    Ok(grads![node.output(), NoGradient])
}

fn mirror_pad_grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![mirror_pad(dy, &op.input(1), &mode_of(op)?), NoGradient])
}

fn grad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    let Some(paddings) = query.constants[1].as_ref() else { return Ok(vec![PartialShape::of_rank(dims.len())]) };
    let paddings = integers(paddings)?;
    let inner = |(axis, &dim): (usize, &i64)| match paddings.get(2 * axis..2 * axis + 2) {
        Some([before, after]) if dim >= 0 => dim.saturating_sub(*before).saturating_sub(*after),
        _ => -1,
    };
    Ok(vec![PartialShape::new(&dims.iter().enumerate().map(inner).collect::<Vec<_>>())])
}

/// How many elements at the edge are not repeated: one when reflecting, none otherwise.
fn skipped(setup: &Setup<'_>) -> Result<usize> {
    match setup.string("mode")?.as_str() {
        "REFLECT" => Ok(1),
        "SYMMETRIC" => Ok(0),
        _ => Err(invalid!("mode must be either REFLECT or SYMMETRIC.")),
    }
}

fn check_rank(input: &Tensor) -> Result<()> {
    match input.shape().rank() {
        0..=MAX_RANK => Ok(()),
        rank => Err(unimplemented_op!("inputs rank not in [0,{MAX_RANK}]: {rank}")),
    }
}

fn mirror_pad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let skip = skipped(setup)?;
    Ok(binary(move |ctx, input, paddings| run_mirror_pad(ctx.pool(), input, &paddings, skip)))
}

fn run_mirror_pad(pool: &Pool, input: Tensor, paddings: &Tensor, skip: usize) -> Result<Tensor> {
    check_rank(&input)?;
    let paddings = pairs(&input, paddings, ", ")?;
    let (mut shape, mut axes) = (Shape::scalar(), Vec::new());
    for (&dim, &[before, after]) in input.shape().iter().zip(&paddings) {
        if before < 0 || after < 0 {
            return Err(invalid!("paddings must be non-negative: {before} {after}"));
        }
        let most = dim as i64 - skip as i64;
        if before > most || after > most {
            return Err(match skip {
                0 => invalid!(
                    "paddings must be no greater than the dimension size: {before}, {after} greater than {dim}"
                ),
                _ => invalid!("paddings must be less than the dimension size: {before}, {after} not less than {dim}"),
            });
        }
        let (before, after) = (before as usize, after as usize);
        shape.dims_mut().push(before + dim + after);
        axes.push(mirrored(dim, before, after, skip));
    }
    shape.checked_elements()?;
    if shape == *input.shape() {
        return Ok(input);
    }
    let mut out = Tensor::scratch_of(input.dtype(), shape)?;
    copy_segments(pool, &axes, &input, &mut out)?;
    Ok(out)
}

/// An axis with its mirrored borders, which are never longer than the axis.
fn mirrored(dim: usize, before: usize, after: usize, skip: usize) -> Vec<Segment> {
    let front = Segment { src: (before + skip).saturating_sub(1), back: true, dst: 0, len: before };
    let inside = Segment { src: 0, back: false, dst: before, len: dim };
    let behind = Segment { src: dim.saturating_sub(1 + skip), back: true, dst: before + dim, len: after };
    vec![front, inside, behind]
}

fn mirror_pad_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let skip = skipped(setup)?;
    for_numbers!(setup, setup.dtype("T")?, T => {
        Ok(binary(move |_, input, paddings| run_mirror_pad_grad::<T>(input, &paddings, skip)))
    })
}

fn run_mirror_pad_grad<T: Element + Number>(input: Tensor, paddings: &Tensor, skip: usize) -> Result<Tensor> {
    check_rank(&input)?;
    let paddings = pairs(&input, paddings, " ")?;
    let (mut shape, mut homes) = (Shape::scalar(), Vec::new());
    for (&dim, &[before, after]) in input.shape().iter().zip(&paddings) {
        if before < 0 || after < 0 {
            return Err(invalid!("Paddings must be non-negative: {before}, {after}"));
        }
        let total = before.saturating_add(after);
        if total >= dim as i64 {
            return Err(invalid!(
                "Total paddings must be less than the input dimension size: {total} was not less than {dim}"
            ));
        }
        let inner = dim - total as usize;
        let most = inner as i64 - skip as i64;
        if before > most || after > most {
            return Err(match skip {
                0 => invalid!(
                    "paddings must be no greater than the output dimension size: {before}, {after} greater than {inner}"
                ),
                _ => invalid!(
                    "paddings must be less than the output dimension size: {before}, {after} not less than {inner}"
                ),
            });
        }
        shape.dims_mut().push(inner);
        homes.push(home_indices(inner, before as usize, after as usize, skip));
    }
    let mut out = Tensor::zeros_of(input.dtype(), &shape)?;
    let (strides, sums) = (input.shape().strides(), out.values_mut::<T>()?);
    for (place, &value) in input.values::<T>()?.iter().enumerate() {
        let home = (0..shape.rank())
            .fold(0, |home, axis| home * shape[axis] + homes[axis][place / strides[axis] % input.shape()[axis]]);
        sums[home] = sums[home].add(value);
    }
    Ok(out)
}

/// For each index of a padded axis the one it mirrors.
fn home_indices(inner: usize, before: usize, after: usize, skip: usize) -> Vec<usize> {
    let mut homes = vec![0; before + inner + after];
    for segment in mirrored(inner, before, after, skip) {
        for step in 0..segment.len {
            homes[segment.dst + step] = if segment.back { segment.src - step } else { segment.src + step };
        }
    }
    homes
}
