//! UniformQuantizedAdd.

use super::uniform_scale::{Limits, Scales, check_positive, check_shapes, requantized};
use op::shapes::broadcast_shapes;
use op::{Grad, Inputs, Kernel, Op, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "UniformQuantizedAdd(lhs: T, rhs: T, lhs_scales: float, lhs_zero_points: int32, rhs_scales: float, \
          rhs_zero_points: int32, output_scales: float, output_zero_points: int32) -> output: T; \
          lhs_quantization_axis: int = -1; lhs_quantization_min_val: int; lhs_quantization_max_val: int; \
          rhs_quantization_axis: int = -1; rhs_quantization_min_val: int; rhs_quantization_max_val: int; \
          output_quantization_axis: int = -1; output_quantization_min_val: int; output_quantization_max_val: int; \
          T: {qint32}",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![broadcast_shapes(&query.inputs[0], &query.inputs[1])?])
}

/// The quantization axes of both operands and of the result.
#[derive(Clone, Copy)]
struct Axes {
    lhs: i64,
    rhs: i64,
    output: i64,
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let axis = |name: &str| setup.int(&format!("{name}_quantization_axis"));
    let axes = Axes { lhs: axis("lhs")?, rhs: axis("rhs")?, output: axis("output")? };
    if axes.lhs < -1 || axes.rhs < -1 || axes.output < -1 {
        return Err(invalid!("lhs, rhs and output quantization_axis must be -1 or within [0, dims)"));
    }
    let limits = Limits::of(setup, "output_")?;
    Ok(many(move |_, mut inputs| Ok(outputs![run(&mut inputs, axes, limits)?])))
}

fn run(inputs: &mut Inputs, axes: Axes, limits: Limits) -> Result<Tensor> {
    let (lhs, rhs) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let parameters = inputs.tensors_from(2)?;
    let [lhs_scales, lhs_zeros, rhs_scales, rhs_zeros, scales, zeros] = parameters.as_slice() else {
        return Err(invalid!("Expected 8 inputs"));
    };
    check_shapes(lhs.shape(), lhs_scales, lhs_zeros, axes.lhs)?;
    check_shapes(rhs.shape(), rhs_scales, rhs_zeros, axes.rhs)?;
    let shape = sum_shape(lhs.shape(), rhs.shape())?;
    check_shapes(&shape, scales, zeros, axes.output)?;
    for (name, operand, axis) in [("lhs", &lhs, axes.lhs), ("rhs", &rhs, axes.rhs)] {
        let from_end = |rank: usize, axis: i64| rank as i64 - axis;
        if axis >= 0
            && axes.output >= 0
            && from_end(operand.shape().rank(), axis) != from_end(shape.rank(), axes.output)
        {
            return Err(invalid!("If {name} and output is both per-axis quantized, the quantization axis must match."));
        }
    }
    check_positive("lhs/rhs/output", &[lhs_scales, rhs_scales, scales])?;
    let zero_points = vec![0; scales.elements()];
    let to = Scales::of(scales, zeros)?.with_zero_points(&zero_points);
    let moved = |operand: &Tensor, scales: &Tensor, zeros: &Tensor, axis: i64| {
        // The axis of the result, counted from the end, is that of an operand with scalar scales.
        let aligned = axes.output - shape.rank() as i64 + operand.shape().rank() as i64;
        let axis = if axis < 0 && axes.output >= 0 { aligned.max(-1) } else { axis };
        requantized::<i32, i32>(operand, DType::QI32, axis, [Scales::of(scales, zeros)?, to], Limits::NONE)
    };
    let lhs = moved(&lhs, lhs_scales, lhs_zeros, axes.lhs)?;
    let rhs = moved(&rhs, rhs_scales, rhs_zeros, axes.rhs)?;
    sum(&lhs, &rhs, shape, axes.output, zeros.values()?, limits)
}

fn sum_shape(lhs: &Shape, rhs: &Shape) -> Result<Shape> {
    let rank = lhs.rank().max(rhs.rank());
    let at = |shape: &Shape, axis: usize| (axis + shape.rank()).checked_sub(rank).map_or(1, |place| shape[place]);
    let dims = (0..rank).map(|axis| match (at(lhs, axis), at(rhs, axis)) {
        (1, dim) | (dim, 1) => Ok(dim as i64),
        (a, b) if a == b => Ok(a as i64),
        _ => Err(invalid!("Cannot Add tensors of shapes: {lhs}{rhs}")),
    });
    Shape::checked(&dims.collect::<Result<Vec<_>>>()?)
}

fn sum(lhs: &Tensor, rhs: &Tensor, shape: Shape, axis: i64, zeros: &[i32], limits: Limits) -> Result<Tensor> {
    let (left, right) = (lhs.values::<i32>()?, rhs.values::<i32>()?);
    let mut out = Tensor::scratch_of(DType::QI32, &shape)?;
    let [_, channels, after] = super::uniform_scale::runs(&shape, axis);
    for (i, out) in out.values_mut::<i32>()?.iter_mut().enumerate() {
        let (a, b) = (left[place(lhs.shape(), &shape, i)], right[place(rhs.shape(), &shape, i)]);
        let zero = zeros[if zeros.len() == 1 { 0 } else { i / after.max(1) % channels.max(1) }];
        *out = limits.clamp(read(a).wrapping_add(read(b)).wrapping_add(zero));
    }
    Ok(out)
}

fn read(value: i32) -> i32 {
    super::uniform_scale::to_integer(value)
}

/// The element of an operand that contributes to element `index` of the result.
fn place(operand: &Shape, whole: &Shape, mut index: usize) -> usize {
    let (mut place, mut stride) = (0, 1);
    for (axis, &dim) in whole.iter().enumerate().rev() {
        let at = index % dim;
        index /= dim;
        if let Some(axis) = (axis + operand.rank()).checked_sub(whole.rank()) {
            place += if operand[axis] == 1 { 0 } else { at * stride };
            stride *= operand[axis];
        }
    }
    place
}
