//! MatrixExponential, MatrixLogarithm and MatrixSquareRoot.

use super::batch::{Matrices, Number, cubic, gathered, map, square_shape};
use super::inverse::matrix_solve;
use super::nodes::adjoint;
use crate::array::matrix_diag::{matrix_diag, matrix_diag_part};
use crate::array::nodes;
use graph::{Node, Output};
use math::linalg::{self, RealScalar, Scalar};
use op::{Ctx, Grad, Grads, Kernel, Op, Outputs, PLAIN, Setup, grads, outputs};
use status::Result;
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MatrixExponential(input: T) -> output: T; T: {double, float, half, complex64, complex128}",
        shape: square_shape,
        grad: Grad::Unknown,
        kernel: exponential_kernel,
        facts: PLAIN.removed_in(27, "Use Python implementation tf.linalg.matrix_exponential instead."),
    },
    Op {
        def: "MatrixLogarithm(input: T) -> output: T; T: {complex64, complex128}",
        shape: square_shape,
        grad: Grad::Unknown,
        kernel: logarithm_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MatrixSquareRoot(input: T) -> output: T; T: {double, float, half, complex64, complex128}",
        shape: square_shape,
        grad: Grad::Rule(root_rule),
        kernel: root_kernel,
        facts: PLAIN,
    },
];

/// The exponentials of matrices.
pub fn matrix_exponential(input: &Output) -> Output {
    nodes::one("MatrixExponential", input)
}

/// The principal logarithms of complex matrices.
pub fn matrix_logarithm(input: &Output) -> Output {
    nodes::one("MatrixLogarithm", input)
}

/// The principal square roots of matrices.
pub fn matrix_square_root(input: &Output) -> Output {
    nodes::one("MatrixSquareRoot", input)
}

/// With r r = a:  dr solves r' da + da r' = dr, written as one system of equations for all elements of da.
fn root_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let root = op.output(0);
    let scope = root.scope();
    let unit = matrix_diag(&nodes::one("OnesLike", &matrix_diag_part(&root)));
    let dims = nodes::shape(&root, DType::I32);
    let (batch, size) = (nodes::part(&dims, 0, Some(-2)), nodes::part(&dims, -1, None));
    let one = nodes::ints(scope, &[1]);
    let square = &size * &size;
    let kronecker = |x: &Output, y: &Output| {
        let x = nodes::reshape(x, &nodes::concat(&[&batch, &size, &one, &size, &one]));
        let y = nodes::reshape(y, &nodes::concat(&[&batch, &one, &size, &one, &size]));
        nodes::reshape(&(x * y), &nodes::concat(&[&batch, &square, &square]))
    };
    let transposed = |x: &Output| if x.dtype().is_complex() { nodes::one("Conj", &adjoint(x)) } else { adjoint(x) };
    let system = kronecker(&unit, &transposed(&root)) + kronecker(&root, &unit);
    let column = nodes::reshape(&transposed(dy), &nodes::concat(&[&batch, &square, &one]));
    Ok(grads![transposed(&nodes::reshape(&matrix_solve(&system, &column, false), &dims))])
}

fn exponential_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_matrices!(setup, setup.dtype("T")?, T => |ctx: &Ctx<'_>, inputs: &[Tensor]| {
        run::<T>(ctx, inputs, |matrix, n| Some(linalg::exponential(ctx.pool(), matrix, n)))
    })
}

fn logarithm_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_matrices!(setup, setup.dtype("T")?, T => |ctx: &Ctx<'_>, inputs: &[Tensor]| run::<T>(ctx, inputs, linalg::logarithm))
}

fn root_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_matrices!(setup, setup.dtype("T")?, T => |ctx: &Ctx<'_>, inputs: &[Tensor]| run::<T>(ctx, inputs, linalg::square_root))
}

/// A matrix for which the function is not defined becomes NaN.
fn run<T: Number>(
    ctx: &Ctx<'_>,
    inputs: &[Tensor],
    function: impl Fn(&[T], usize) -> Option<Vec<T>> + Sync,
) -> Result<Outputs> {
    let a = Matrices::<T>::square(&inputs[0])?;
    let n = a.rows;
    let results = map(ctx, a.count(), 25.0 * cubic(n, n), |number| {
        let nan = T::from_real(<T as Scalar>::Real::of(f64::NAN));
        Ok(if n == 0 { Vec::new() } else { function(a.get(number), n).unwrap_or_else(|| vec![nan; n * n]) })
    })?;
    Ok(outputs![gathered(a.shape(&[n, n])?, results)?])
}
