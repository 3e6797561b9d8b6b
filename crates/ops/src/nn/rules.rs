//! Small pieces of graph that several gradient rules add.

use graph::{Node, OpBuilder, Output, Scope};
use status::Result;
use tensor::Tensor;

/// A constant node.
pub(crate) fn constant(scope: &Scope, value: Tensor) -> Output {
    let dtype = value.dtype();
    scope.op("Const").attr("value", value).attr("dtype", dtype).output()
}

/// A node of one input.
pub(crate) fn apply(op: &str, x: &Output) -> Output {
    x.scope().op(op).input(x).output()
}

/// The sum over the last axis, which remains with size 1.
pub(crate) fn sum_last(x: &Output) -> Output {
    let axis = constant(x.scope(), Tensor::vector(&[-1i32]));
    x.scope().op("Sum").input(x).input(&axis).attr("keep_dims", true).output()
}

/// The shape of a tensor, as int32.
pub(crate) fn shape_of(x: &Output) -> Output {
    apply("Shape", x)
}

/// Height and width of a batch of images, as int32.
pub(crate) fn image_size_of(images: &Output) -> Output {
    let vector = |values: &[i32]| constant(images.scope(), Tensor::vector(values));
    let shape = shape_of(images);
    let builder = images.scope().op("StridedSlice").input(&shape);
    builder.input(&vector(&[1])).input(&vector(&[3])).input(&vector(&[1])).output()
}

/// A new axis of size 1 at the end.
pub(crate) fn expand_last(x: &Output) -> Output {
    let axis = constant(x.scope(), Tensor::scalar(-1i32));
    x.scope().op("ExpandDims").input(x).input(&axis).output()
}

/// The node in the making, with these attributes as `op` has them.
pub(crate) fn copied(mut builder: OpBuilder, op: &Node, names: &[&str]) -> Result<OpBuilder> {
    for name in names {
        builder = builder.attr(name, op.attr(name)?);
    }
    Ok(builder)
}
