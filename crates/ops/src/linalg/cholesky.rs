//! Cholesky and its gradient.

use super::batch::{Matrices, Number, cubic, gathered, map, square_shape};
use super::nodes::{adjoint, product};
use super::triangular_solve::triangular_solve;
use crate::array::matrix_band_part::matrix_band_part;
use crate::array::matrix_diag::{matrix_diag, matrix_diag_part};
use crate::array::matrix_set_diag::matrix_set_diag;
use crate::array::nodes;
use graph::{Node, Output};
use math::gemm::{Matrix, matmul};
use math::linalg::{self, RealScalar, Scalar};
use op::shapes::merged;
use op::{Ctx, Grad, Grads, Kernel, Op, Outputs, PLAIN, Setup, grads, outputs};
use status::{Result, invalid};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Cholesky(input: T) -> output: T; T: {double, float, half, complex64, complex128}",
        shape: square_shape,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "BatchCholesky(input: T) -> output: T; T: {double, float}",
        shape: square_shape,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN.removed_in(13, "Use Cholesky instead."),
    },
    Op {
        def: "CholeskyGrad(l: T, grad: T) -> output: T; T: {half, float, double}",
        shape: merged,
        grad: Grad::Unknown,
        kernel: grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "BatchCholeskyGrad(l: T, grad: T) -> output: T; T: {float, double}",
        shape: merged,
        grad: Grad::Unknown,
        kernel: grad_kernel,
        facts: PLAIN.removed_in(13, "Use CholeskyGrad instead."),
    },
];

/// The lower triangle `l` with `l l' = input` of positive definite matrices.
pub fn cholesky(input: &Output) -> Output {
    nodes::one("Cholesky", input)
}

/// With a = l l':  da = l^-' p l^-1 made symmetric, where p is the lower triangle of l' dl with half its diagonal.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let l = op.output(0);
    let unit = matrix_diag(&nodes::one("OnesLike", &matrix_diag_part(&l)));
    let inverse = triangular_solve(&l, &unit, true, false);
    let middle = product(&l, dy, true, false);
    let middle = matrix_set_diag(&middle, &(matrix_diag_part(&middle) * 0.5));
    let middle = matrix_band_part(&middle, -1, 0);
    let da = product(&product(&inverse, &middle, true, false), &inverse, false, false);
    Ok(grads![(&da + adjoint(&da)) * 0.5])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_matrices!(setup, setup.dtype("T")?, T => run::<T>)
}

fn run<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor]) -> Result<Outputs> {
    let a = Matrices::<T>::square(&inputs[0])?;
    let n = a.rows;
    let factors = map(ctx, a.count(), cubic(n, n) / 6.0, |number| {
        let mut l = a.get(number).to_vec();
        if !linalg::cholesky(ctx.pool(), &mut l, n) {
            // A matrix that is not positive definite has no factor: the result is NaN.
            let nan = T::from_real(<T as Scalar>::Real::of(f64::NAN));
            for (row, values) in l.chunks_exact_mut(n.max(1)).enumerate() {
                values[..=row].fill(nan);
                values[row + 1..].fill(T::default());
            }
        }
        Ok(l)
    })?;
    Ok(outputs![gathered(a.shape(&[n, n])?, factors)?])
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_matrices!(setup, setup.dtype("T")?, T => run_grad::<T>)
}

fn run_grad<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor]) -> Result<Outputs> {
    let (l, grad) = Matrices::<T>::pair(inputs)?;
    if (l.rows, l.cols) != (grad.rows, grad.cols) {
        return Err(invalid!("Inputs (L and grad) must have the same shape."));
    }
    if l.rows != l.cols {
        return Err(invalid!("Inputs must be a square matrices."));
    }
    let n = l.rows;
    let results = map(ctx, l.count(), cubic(n, n), |number| Ok(gradient(ctx, l.get(number), grad.get(number), n)))?;
    Ok(outputs![gathered(l.shape(&[n, n])?, results)?])
}

/// The formula of the rule, on one matrix; only lower triangles are read.
fn gradient<T: Number>(ctx: &Ctx<'_>, l: &[T], grad: &[T], n: usize) -> Vec<T> {
    let lower = |matrix: &[T]| (0..n * n).map(|at| if at % n <= at / n { matrix[at] } else { T::default() }).collect();
    let (l, grad): (Vec<T>, Vec<T>) = (lower(l), lower(grad));
    let upper = linalg::adjoint(&l, n, n);
    let mut middle = vec![T::default(); n * n];
    matmul(ctx.pool(), Matrix::new(&upper, n, n), Matrix::new(&grad, n, n), &mut middle);
    let half = <T as Scalar>::Real::of(0.5);
    for (row, values) in middle.chunks_exact_mut(n.max(1)).enumerate() {
        values[row] = values[row].scale(half);
        values[row + 1..].fill(T::default());
    }
    linalg::solve_upper(ctx.pool(), &upper, n, &mut middle, n);
    let mut result = linalg::adjoint(&middle, n, n);
    linalg::solve_upper(ctx.pool(), &upper, n, &mut result, n);
    let other = linalg::adjoint(&result, n, n);
    result.iter().zip(other).map(|(&a, b)| (a + b).scale(half)).collect()
}
