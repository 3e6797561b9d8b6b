//! MatrixInverse and MatrixSolve.

use super::batch::{Matrices, Number, cubic, gathered, map, matrix_dims, square_shape};
use super::nodes::product;
use graph::{Node, Output};
use math::linalg::{self, lu};
use op::{Ctx, Grad, Grads, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, outputs};
use status::{Result, invalid};
use std::borrow::Cow;
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MatrixInverse(input: T) -> output: T; adjoint: bool = false; T: {double, float, half, complex64, complex128}",
        shape: square_shape,
        grad: Grad::Rule(inverse_rule),
        kernel: inverse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "BatchMatrixInverse(input: T) -> output: T; adjoint: bool = false; T: {double, float}",
        shape: square_shape,
        grad: Grad::Unknown,
        kernel: inverse_kernel,
        facts: PLAIN.removed_in(13, "Use MatrixInverse instead."),
    },
    Op {
        def: "MatrixSolve(matrix: T, rhs: T) -> output: T; adjoint: bool = false; T: {double, float, half, complex64, complex128}",
        shape: solve_shape,
        grad: Grad::Rule(solve_rule),
        kernel: solve_kernel,
        facts: PLAIN,
    },
    Op {
        def: "BatchMatrixSolve(matrix: T, rhs: T) -> output: T; adjoint: bool = false; T: {double, float}",
        shape: solve_shape,
        grad: Grad::Unknown,
        kernel: solve_kernel,
        facts: PLAIN.removed_in(13, "Use MatrixSolve instead."),
    },
];

/// The inverses of matrices, or of their adjoints.
pub fn matrix_inverse(input: &Output, adjoint: bool) -> Output {
    input.scope().op("MatrixInverse").input(input).attr("adjoint", adjoint).output()
}

/// The `x` with `matrix x = rhs`, or with its adjoint.
pub fn matrix_solve(matrix: &Output, rhs: &Output, adjoint: bool) -> Output {
    matrix.scope().op("MatrixSolve").input(matrix).input(rhs).attr("adjoint", adjoint).output()
}

/// Shape function: a square matrix and right sides with as many rows.
pub(super) fn solve_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (Some((_, rows, cols)), Some((batch, right, width))) =
        (matrix_dims(&query.inputs[0])?, matrix_dims(&query.inputs[1])?)
    else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let size = PartialShape::new(&[rows]).merge(&PartialShape::new(&[cols]))?.merge(&PartialShape::new(&[right]))?;
    Ok(vec![PartialShape::new(&[batch, size.dims().unwrap_or_default(), &[width]].concat())])
}

/// With b = a^-1:  da = -b' db b'.
fn inverse_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (b, adjoint) = (op.output(0), op.attr_bool("adjoint")?);
    Ok(grads![-product(&b, &product(dy, &b, adjoint, !adjoint), !adjoint, false)])
}

/// With a x = b:  db = a^-' dx  and  da = -db x'.
fn solve_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (a, x, adjoint) = (op.input(0), op.output(0), op.attr_bool("adjoint")?);
    let db = matrix_solve(&a, dy, !adjoint);
    let da = if adjoint { product(&x, &db, false, true) } else { product(&db, &x, false, true) };
    Ok(grads![-da, db])
}

fn inverse_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let adjoint = setup.bool("adjoint")?;
    for_matrices!(setup, setup.dtype("T")?, T => move |ctx: &Ctx<'_>, inputs: &[Tensor]| run_inverse::<T>(ctx, inputs, adjoint))
}

fn oriented<T: Number>(matrix: &[T], n: usize, adjoint: bool) -> Cow<'_, [T]> {
    if adjoint { Cow::Owned(linalg::adjoint(matrix, n, n)) } else { Cow::Borrowed(matrix) }
}

fn run_inverse<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor], adjoint: bool) -> Result<Outputs> {
    let a = Matrices::<T>::square(&inputs[0])?;
    let n = a.rows;
    let results = map(ctx, a.count(), cubic(n, n), |number| {
        let factors = lu(ctx.pool(), &oriented(a.get(number), n, adjoint), n);
        match factors.invertible() {
            true => Ok(factors.solve(ctx.pool(), &linalg::identity(n, n), n)),
            false => Err(invalid!("Input is not invertible.")),
        }
    })?;
    Ok(outputs![gathered(a.shape(&[n, n])?, results)?])
}

fn solve_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let adjoint = setup.bool("adjoint")?;
    for_matrices!(setup, setup.dtype("T")?, T => move |ctx: &Ctx<'_>, inputs: &[Tensor]| run_solve::<T>(ctx, inputs, adjoint))
}

fn run_solve<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor], adjoint: bool) -> Result<Outputs> {
    let (a, b) = Matrices::<T>::pair(inputs)?;
    if a.rows != a.cols {
        return Err(invalid!("First input (lhs) must be a square matrix."));
    }
    if a.rows != b.rows {
        return Err(invalid!("Input matrix and rhs are incompatible."));
    }
    let n = a.rows;
    if n == 0 || b.cols == 0 {
        return Ok(outputs![Tensor::zeros::<T>(a.shape(&[n, b.cols])?)?]);
    }
    let results = map(ctx, a.count(), cubic(n, n), |number| {
        let factors = lu(ctx.pool(), &oriented(a.get(number), n, adjoint), n);
        match factors.invertible() {
            true => Ok(factors.solve(ctx.pool(), b.get(number), b.cols)),
            false => Err(invalid!("Input matrix is not invertible.")),
        }
    })?;
    Ok(outputs![gathered(a.shape(&[n, b.cols])?, results)?])
}
