//! Small pieces of graph that walking backwards adds.

use graph::{Output, Scope};
use op::{Gradient, Slices};
use tensor::{DType, Tensor};

/// A constant.
pub(crate) fn constant(scope: &Scope, value: Tensor) -> Output {
    let dtype = value.dtype();
    scope.op("Const").attr("value", value).attr("dtype", dtype).output()
}

/// The dimensions of `x`.
pub(crate) fn shape(x: &Output) -> Output {
    x.scope().op("Shape").input(x).output()
}

/// `x` filled with ones: the gradient of a value by itself.
pub(crate) fn ones(x: &Output, place: usize) -> Output {
    let one = x.like(1.0);
    let one = x.scope().op("Identity").named(&format!("grad_ys_{place}")).input(&one).output();
    x.scope().op("Fill").input(&shape(x)).input(&one).output()
}

/// Zeros like `x`.
pub(crate) fn zeros_like(x: &Output) -> Output {
    x.scope().op("ZerosLike").input(x).output()
}

/// A gradient with a number for every element: rows that come twice are summed, missing ones are zero.
pub fn densify(gradient: &Gradient) -> Output {
    match gradient {
        Gradient::Dense(output) => output.clone(),
        Gradient::Sparse(slices) => whole(slices),
    }
}

/// The tensor that slices are rows of.
fn whole(slices: &Slices) -> Output {
    let scope = slices.values.scope();
    let Some(dims) = &slices.shape else {
        // Without the shape of the whole nobody knows how many rows it has.
        let error = status::invalid!(
            "Tensor conversion requested for IndexedSlices for variable without a shape: {}",
            slices.values.name()
        );
        scope.graph().fail(error);
        return slices.values.clone();
    };
    let dims = dims.seen_from(scope);
    let bounds = |at: i32| constant(scope, Tensor::vector(&[at]));
    let rows = scope
        .op("StridedSlice")
        .input(&dims)
        .input(&bounds(0))
        .input(&bounds(1))
        .input(&bounds(1))
        .attr("shrink_axis_mask", 1_i64)
        .output();
    let rows = match rows.dtype() {
        DType::I32 => rows,
        _ => scope.op("Cast").input(&rows).attr("DstT", DType::I32).output(),
    };
    scope.op("UnsortedSegmentSum").input(&slices.values).input(&slices.indices).input(&rows).output()
}
