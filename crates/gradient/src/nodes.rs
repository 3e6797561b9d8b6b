//! The nodes that differentiation itself adds to a graph.

use graph::builtin_ops::{CAST, CONST, FILL, IDENTITY, SHAPE, STRIDED_SLICE, UNSORTED_SEGMENT_SUM, ZEROS_LIKE};
use graph::{Output, Scope};
use op::{Gradient, Slices};
use tensor::{DType, Tensor};

/// A constant.
pub(crate) fn constant(scope: &Scope, value: Tensor) -> Output {
    let dtype = value.dtype();
    scope.op(CONST).attr("value", value).attr("dtype", dtype).output()
}

/// The dimensions of `x`.
pub(crate) fn shape(x: &Output) -> Output {
    x.scope().op(SHAPE).input(x).output()
}

/// Ones of the shape of `x`: the gradient of a value by itself.
pub(crate) fn ones(x: &Output, index: usize) -> Output {
    let one = x.like(1.0);
    let one = x.scope().op(IDENTITY).named(&format!("grad_ys_{index}")).input(&one).output();
    x.scope().op(FILL).input(&shape(x)).input(&one).output()
}

/// Zeros of the shape of `x`.
pub(crate) fn zeros_like(x: &Output) -> Output {
    x.scope().op(ZEROS_LIKE).input(x).output()
}

/// Returns a gradient as one tensor: slices with equal indices are summed, missing rows are zero.
pub fn densify(gradient: &Gradient) -> Output {
    match gradient {
        Gradient::Dense(output) => output.clone(),
        Gradient::Sparse(slices) => densify_slices(slices),
    }
}

/// The tensor whose rows the slices are. Building fails if the shape of that tensor is unknown.
fn densify_slices(slices: &Slices) -> Output {
    let scope = slices.values.scope();
    let Some(dims) = &slices.shape else {
        let error = status::invalid!(
            "Tensor conversion requested for IndexedSlices for variable without a shape: {}",
            slices.values.name()
        );
        scope.graph().fail(error);
        return slices.values.clone();
    };
    let dims = dims.seen_from(scope);
    let bound = |at: i32| constant(scope, Tensor::vector(&[at]));
    let rows = scope
        .op(STRIDED_SLICE)
        .input(&dims)
        .input(&bound(0))
        .input(&bound(1))
        .input(&bound(1))
        .attr("shrink_axis_mask", 1_i64)
        .output();
    let rows = match rows.dtype() {
        DType::I32 => rows,
        _ => scope.op(CAST).input(&rows).attr("DstT", DType::I32).output(),
    };
    scope.op(UNSORTED_SEGMENT_SUM).input(&slices.values).input(&slices.indices).input(&rows).output()
}
