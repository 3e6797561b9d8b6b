//! Nodes for gradient rules of this family.

use crate::array::nodes;
use graph::Output;
use tensor::DType;

/// The product of matrices, either of them adjoint if asked for.
pub(super) fn product(x: &Output, y: &Output, adjoint_x: bool, adjoint_y: bool) -> Output {
    let builder = x.scope().op("BatchMatMulV2").input(x).input(y);
    builder.attr("adj_x", adjoint_x).attr("adj_y", adjoint_y).output()
}

/// Rows and columns exchanged, every number conjugated.
pub(super) fn adjoint(x: &Output) -> Output {
    turned(if x.dtype().is_complex() { "ConjugateTranspose" } else { "Transpose" }, x)
}

/// Rows and columns exchanged.
pub(crate) fn transposed(x: &Output) -> Output {
    turned("Transpose", x)
}

fn turned(op: &str, x: &Output) -> Output {
    let rank = nodes::rank(x);
    let scope = x.scope();
    let outer = nodes::range(&(&rank - 2.0));
    let one = nodes::ints(scope, &[1]);
    let (last, before) = (nodes::reshape(&(&rank - 1.0), &one), nodes::reshape(&(&rank - 2.0), &one));
    let order = nodes::concat(&[&outer, &last, &before]);
    scope.op(op).input(x).input(&order).output()
}

/// Numbers, one for each matrix, with two axes more.
pub(super) fn with_matrix_axes(x: &Output) -> Output {
    nodes::expand(&nodes::expand(x, -1), -1)
}

/// The gradient of an operand whose batch may have been broadcast: summed back to the operand's shape.
pub(super) fn sum_to_batch(gradient: &Output, operand: &Output, other: &Output) -> Output {
    let batch = |x: &Output| nodes::part(&nodes::shape(x, DType::I32), 0, Some(-2));
    let scope = gradient.scope();
    let args = scope.op("BroadcastGradientArgs").input(&batch(operand)).input(&batch(other)).node();
    nodes::reshape(&nodes::sum(gradient, &args.output(0), false), &nodes::shape(operand, DType::I32))
}

/// `x / (x x + tiny)`: the reciprocal, and zero where that would be infinite.
pub(super) fn safe_reciprocal(x: &Output) -> Output {
    x / (x * x + 1e-20)
}
