//! Gradients of broadcast operands: sums over the axes that were repeated.

use graph::{Output, Scope};
use op::{Gradient, Grads};
use tensor::{DType, PartialShape, Tensor};

/// The gradients of `x` and `y`, which were broadcast against each other, from those of their pairs.
pub(crate) fn summed(x: &Output, y: &Output, dx: Output, dy: Output) -> Grads {
    let (dx, dy) = sum_both(x, y, Some(dx), Some(dy));
    vec![dx.map(Gradient::Dense), dy.map(Gradient::Dense)]
}

/// As `summed`, of the second operand alone.
pub(crate) fn summed_right(x: &Output, y: &Output, dy: Output) -> Output {
    sum_both(x, y, None, Some(dy)).1.expect("a gradient went in")
}

/// `gradient`, of the shape of `whole`, summed to the shape of `x`, which broadcasts to it.
pub(crate) fn sum_to_shape_of(gradient: Output, x: &Output, whole: &Output) -> Output {
    sum_both(x, whole, Some(gradient), None).0.expect("a gradient went in")
}

fn sum_both(x: &Output, y: &Output, dx: Option<Output>, dy: Option<Output>) -> (Option<Output>, Option<Output>) {
    let (x_shape, y_shape) = (x.shape(), y.shape());
    match (repeated_axes(&x_shape, &y_shape), repeated_axes(&y_shape, &x_shape)) {
        (Some(x_axes), Some(y_axes)) => {
            let (x_less, y_less) = (x_shape.rank() < y_shape.rank(), y_shape.rank() < x_shape.rank());
            (dx.map(|dx| sum_known(dx, x, &x_axes, x_less)), dy.map(|dy| sum_known(dy, y, &y_axes, y_less)))
        }
        _ => sum_unknown(x, y, dx, dy),
    }
}

/// The axes of the common shape along which `x` is repeated; none if that is not known yet.
fn repeated_axes(x: &PartialShape, y: &PartialShape) -> Option<Vec<i32>> {
    let (x, y) = (x.dims()?, y.dims()?);
    let rank = x.len().max(y.len());
    let at = |dims: &[i64], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |place| dims[place]);
    let mut axes = Vec::new();
    for axis in 0..rank {
        match (at(x, axis), at(y, axis)) {
            (1, 1) => {}
            (1, _) => axes.push(axis as i32),
            (_, 1) => {}
            (a, b) if a < 0 || b < 0 => return None,
            _ => {}
        }
    }
    Some(axes)
}

fn sum_known(gradient: Output, x: &Output, axes: &[i32], fewer_axes: bool) -> Output {
    if axes.is_empty() && !fewer_axes {
        return gradient;
    }
    let axes = constant(gradient.scope(), Tensor::vector(axes));
    reshaped(&kept_sum(&gradient, &axes), &shape_of(x))
}

fn sum_unknown(x: &Output, y: &Output, dx: Option<Output>, dy: Option<Output>) -> (Option<Output>, Option<Output>) {
    let (x_shape, y_shape) = (shape_of(x), shape_of(y));
    let axes = x.scope().op("BroadcastGradientArgs").input(&x_shape).input(&y_shape).node();
    (
        dx.map(|dx| reshaped(&kept_sum(&dx, &axes.output(0)), &x_shape)),
        dy.map(|dy| reshaped(&kept_sum(&dy, &axes.output(1)), &y_shape)),
    )
}

/// The sum along `axes`, which remain with length one.
fn kept_sum(x: &Output, axes: &Output) -> Output {
    x.scope().op("Sum").input(x).input(axes).attr("keep_dims", true).output()
}

/// A constant node.
pub(crate) fn constant(scope: &Scope, value: Tensor) -> Output {
    let dtype = value.dtype();
    scope.op("Const").attr("value", value).attr("dtype", dtype).output()
}

/// The shape of `x` as a tensor; a constant where it is known.
pub(crate) fn shape_of(x: &Output) -> Output {
    match x.shape().known() {
        Some(shape) if shape.iter().all(|&dim| dim <= i32::MAX as usize) => {
            let dims: Vec<i32> = shape.iter().map(|&dim| dim as i32).collect();
            constant(x.scope(), Tensor::vector(&dims))
        }
        _ => x.scope().op("Shape").input(x).attr("out_type", DType::I32).output(),
    }
}

/// The elements of `x` under another shape.
pub(crate) fn reshaped(x: &Output, shape: &Output) -> Output {
    x.scope().op("Reshape").input(x).input(shape).output()
}
