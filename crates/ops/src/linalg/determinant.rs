//! MatrixDeterminant and LogMatrixDeterminant.

use super::batch::{Matrices, Number, cubic, map, matrix_dims};
use super::inverse::matrix_inverse;
use super::nodes::with_matrix_axes;
use crate::array::nodes;
use graph::{Node, Output};
use math::linalg::{RealScalar, Scalar, lu};
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, outputs};
use status::Result;
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MatrixDeterminant(input: T) -> output: T; T: {half, float, double, complex64, complex128}",
        shape: determinant_shape,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "BatchMatrixDeterminant(input: T) -> output: T; T: {float, double, complex64, complex128}",
        shape: determinant_shape,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN.removed_in(13, "Use MatrixDeterminant instead."),
    },
    Op {
        def: "LogMatrixDeterminant(input: T) -> sign: T, log_abs_determinant: T; T: {half, float, double, complex64, complex128}",
        shape: determinant_shape,
        grad: Grad::Rules(log_rule),
        kernel: log_kernel,
        facts: PLAIN,
    },
];

/// The determinants of matrices.
pub fn matrix_determinant(input: &Output) -> Output {
    nodes::one("MatrixDeterminant", input)
}

/// The signs of determinants, and the logarithms of their distances from zero.
pub fn log_matrix_determinant(input: &Output) -> (Output, Output) {
    let node = input.scope().op("LogMatrixDeterminant").input(input).node();
    (node.output(0), node.output(1))
}

fn determinant_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let batch = matrix_dims(&query.inputs[0])?.map(|(batch, _, _)| PartialShape::new(batch));
    Ok(vec![batch.unwrap_or(PartialShape::unknown()); query.outputs])
}

/// With c = det a:  da = dc c a^-'.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (a, c) = (op.input(0), op.output(0));
    Ok(grads![with_matrix_axes(&(dy * c)) * matrix_inverse(&a, true)])
}

fn log_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    match &dys[1] {
        Some(dy) => Ok(grads![with_matrix_axes(dy) * matrix_inverse(&op.input(0), true)]),
        None => Ok(grads![NoGradient]),
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_matrices!(setup, setup.dtype("T")?, T => run::<T>)
}

fn log_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_matrices!(setup, setup.dtype("T")?, T => run_log::<T>)
}

fn run<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor]) -> Result<Outputs> {
    let a = Matrices::<T>::square(&inputs[0])?;
    let parts = signs_and_logs(ctx, &a)?;
    let values: Vec<T> = parts.iter().map(|&(sign, log)| sign.scale(<T as Scalar>::Real::of(log.exp()))).collect();
    Ok(outputs![Tensor::from_slice(a.shape(&[])?, &values)?])
}

fn run_log<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor]) -> Result<Outputs> {
    let a = Matrices::<T>::square(&inputs[0])?;
    let (signs, logs): (Vec<T>, Vec<f64>) = signs_and_logs(ctx, &a)?.into_iter().unzip();
    let logs: Vec<T> = logs.into_iter().map(|log| T::from_real(<T as Scalar>::Real::of(log))).collect();
    Ok(outputs![Tensor::from_slice(a.shape(&[])?, &signs)?, Tensor::from_slice(a.shape(&[])?, &logs)?])
}

/// A product of pivots may leave the range of numbers where its logarithm does not.
fn signs_and_logs<T: Number>(ctx: &Ctx<'_>, a: &Matrices<'_, T>) -> Result<Vec<(T, f64)>> {
    let n = a.rows;
    map(ctx, a.count(), cubic(n, n) / 3.0, |number| {
        let factors = lu(ctx.pool(), a.get(number), n);
        let start = if factors.odd { -T::ONE } else { T::ONE };
        let part = |(sign, log): (T, f64), pivot: T| {
            let size = pivot.modulus();
            (sign * unit(pivot, T::from_real(size)), log + size.wide().ln())
        };
        Ok(factors.diagonal().take(n).fold((start, 0.0), part))
    })
}

/// A pivot divided by its size, also where the size is zero or infinite.
fn unit<T: Number>(pivot: T, size: T) -> T {
    match pivot {
        zero if zero == T::default() => zero,
        positive if positive == size => T::ONE,
        negative if negative == -size => -T::ONE,
        pivot => pivot / size,
    }
}
