//! Nodes for gradient rules of this crate: shapes, constants, and ops that move elements.

use graph::{Output, Scope};
use tensor::{DType, Tensor};

/// A constant node.
pub(crate) fn constant(scope: &Scope, value: Tensor) -> Output {
    let dtype = value.dtype();
    scope.op("Const").attr("value", value).attr("dtype", dtype).output()
}

/// A vector of int32.
pub(crate) fn ints(scope: &Scope, values: &[i32]) -> Output {
    constant(scope, Tensor::vector(values))
}

/// A constant int32 scalar.
pub(crate) fn int(scope: &Scope, value: i32) -> Output {
    constant(scope, Tensor::scalar(value))
}

/// The dimensions of `x`, as int32 or int64.
pub(crate) fn shape(x: &Output, out_type: DType) -> Output {
    x.scope().op("Shape").input(x).attr("out_type", out_type).output()
}

/// How many elements `x` has, as int32 or int64.
pub(crate) fn size(x: &Output, out_type: DType) -> Output {
    x.scope().op("Size").input(x).attr("out_type", out_type).output()
}

/// How many dimensions `x` has.
pub(crate) fn rank(x: &Output) -> Output {
    x.scope().op("Rank").input(x).output()
}

/// `x` under another shape.
pub(crate) fn reshape(x: &Output, shape: &Output) -> Output {
    x.scope().op("Reshape").input(x).input(shape).output()
}

/// `x` as a vector.
pub(crate) fn flat(x: &Output) -> Output {
    reshape(x, &ints(x.scope(), &[-1]))
}

/// `x` cast to another type.
pub(crate) fn cast(x: &Output, dtype: DType) -> Output {
    if x.dtype() == dtype {
        return x.clone();
    }
    x.scope().op("Cast").input(x).attr("DstT", dtype).output()
}

/// Axes in another order.
pub(crate) fn transpose(x: &Output, perm: &[i32]) -> Output {
    x.scope().op("Transpose").input(x).input(&ints(x.scope(), perm)).output()
}

/// Vectors one after the other.
pub(crate) fn concat(parts: &[&Output]) -> Output {
    if let [only] = parts {
        return (*only).clone();
    }
    let scope = parts[0].scope();
    scope.op("ConcatV2").inputs(parts.iter().copied()).input(&int(scope, 0)).output()
}

/// Elements `begin .. end` of a vector; `end` none means all.
pub(crate) fn part(x: &Output, begin: i32, end: Option<i32>) -> Output {
    let scope = x.scope();
    let (begin, end_mask) = (ints(scope, &[begin]), i64::from(end.is_none()));
    let end = ints(scope, &[end.unwrap_or(0)]);
    let strided = scope.op("StridedSlice").input(x).input(&begin).input(&end).input(&ints(scope, &[1]));
    strided.attr("end_mask", end_mask).output()
}

/// Element `index` of a vector, as a scalar.
pub(crate) fn element(x: &Output, index: i32) -> Output {
    let scope = x.scope();
    let (begin, end) = (ints(scope, &[index]), ints(scope, &[index.wrapping_add(1)]));
    let strided = scope.op("StridedSlice").input(x).input(&begin).input(&end).input(&ints(scope, &[1]));
    let strided = strided.attr("shrink_axis_mask", 1_i64);
    if index == -1 { strided.attr("end_mask", 1_i64).output() } else { strided.output() }
}

/// `0, 1 .. limit`, of the type of `limit`.
pub(crate) fn range(limit: &Output) -> Output {
    limit.scope().op("Range").input(&limit.like(0.0)).input(limit).input(&limit.like(1.0)).output()
}

/// The product of all elements of a vector.
pub(crate) fn product(x: &Output) -> Output {
    x.scope().op("Prod").input(x).input(&ints(x.scope(), &[0])).output()
}

/// `x` with a new axis of one.
pub(crate) fn expand(x: &Output, axis: i32) -> Output {
    x.scope().op("ExpandDims").input(x).input(&int(x.scope(), axis)).output()
}

/// Zeros like `x`.
pub(crate) fn zeros_like(x: &Output) -> Output {
    x.scope().op("ZerosLike").input(x).output()
}

/// `yes` where the condition holds, `no` elsewhere.
pub(crate) fn select(condition: &Output, yes: &Output, no: &Output) -> Output {
    condition.scope().op("SelectV2").input(condition).input(yes).input(no).output()
}

/// An op of two inputs.
pub(crate) fn pair(op: &str, a: &Output, b: &Output) -> Output {
    a.scope().op(op).input(a).input(b).output()
}

/// An op of one input.
pub(crate) fn one(op: &str, x: &Output) -> Output {
    x.scope().op(op).input(x).output()
}

/// The sum over some axes.
pub(crate) fn sum(x: &Output, axes: &Output, keep_dims: bool) -> Output {
    x.scope().op("Sum").input(x).input(axes).attr("keep_dims", keep_dims).output()
}
