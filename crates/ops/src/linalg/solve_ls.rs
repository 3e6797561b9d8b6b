//! MatrixSolveLs: least squares, and the solution of minimum norm where there are several.

use super::batch::{Matrices, Number, cubic, gathered, map, matrix_dims};
use super::cholesky::cholesky;
use super::nodes::{adjoint, product};
use super::triangular_solve::triangular_solve;
use crate::array::matrix_diag::{matrix_diag, matrix_diag_part};
use crate::array::nodes;
use crate::control::flow::switch_on;
use graph::{Node, Output};
use math::gemm::{Matrix, matmul};
use math::linalg::{self, RealScalar, Scalar};
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MatrixSolveLs(matrix: T, rhs: T, l2_regularizer: double) -> output: T; \
              T: {double, float, half, complex64, complex128}; fast: bool = true",
        shape: solve_shape,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "BatchMatrixSolveLs(matrix: T, rhs: T, l2_regularizer: double) -> output: T; T: {double, float}; \
              fast: bool = true",
        shape: solve_shape,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN.removed_in(13, "Use MatrixSolveLs instead."),
    },
];

/// The `x` for which `matrix x` is nearest to `rhs`, plus `l2_regularizer` times its square.
pub fn matrix_solve_ls(matrix: &Output, rhs: &Output, l2_regularizer: &Output, fast: bool) -> Output {
    let builder = matrix.scope().op("MatrixSolveLs").input(matrix).input(rhs).input(l2_regularizer);
    builder.attr("fast", fast).output()
}

fn solve_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (Some((batch, _, cols)), Some((_, _, width))) =
        (matrix_dims(&query.inputs[0])?, matrix_dims(&query.inputs[1])?)
    else {
        return Ok(vec![PartialShape::unknown()]);
    };
    Ok(vec![PartialShape::new(&[batch, &[cols, width]].concat())])
}

/// Differentiates the normal equations, of the first kind for high matrices and of the second for wide ones. Where the
/// shape is not known yet, both are built and the step decides.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [a, b, regularizer] = op.inputs()?;
    if !op.attr_bool("fast")? {
        return Err(invalid!("Gradient not defined for fast=False"));
    }
    let problem = [a, b, regularizer, op.output(0), dy.clone()];
    let shape = problem[0].shape();
    let known = shape.rank().and_then(|rank| shape.dim(rank.checked_sub(2)?).zip(shape.dim(rank - 1)));
    let [da, db] = match known {
        Some((rows, cols)) if rows >= cols => high_gradients(&problem),
        Some(_) => wide_gradients(&problem),
        None => either_gradients(&problem),
    };
    Ok(grads![da, db, NoGradient])
}

fn either_gradients(problem: &[Output; 5]) -> [Output; 2] {
    let dims = nodes::shape(&problem[0], DType::I32);
    let high = nodes::pair("GreaterEqual", &nodes::element(&dims, -2), &nodes::element(&dims, -1));
    let branch = |index: usize| problem.each_ref().map(|value| switch_on(value, &high).output(index));
    let ([high_da, high_db], [wide_da, wide_db]) = (high_gradients(&branch(1)), wide_gradients(&branch(0)));
    let meet = |yes: Output, no: Output| yes.scope().op("Merge").inputs([&yes, &no]).node().output(0);
    [meet(high_da, wide_da), meet(high_db, wide_db)]
}

/// The Cholesky factor of the gramian with the regularizer on its diagonal, and what solves with it.
fn solver(a: &Output, regularizer: &Output, high: bool) -> impl Fn(&Output) -> Output {
    let gramian = product(a, a, high, !high);
    let ones = nodes::one("OnesLike", &matrix_diag_part(&gramian));
    let l = cholesky(&(&gramian + matrix_diag(&(ones * nodes::cast(regularizer, a.dtype())))));
    move |x| triangular_solve(&l, &triangular_solve(&l, x, true, false), true, true)
}

fn high_gradients([a, b, regularizer, x, dy]: &[Output; 5]) -> [Output; 2] {
    let z = solver(a, regularizer, true)(dy);
    let xz = product(x, &z, false, true);
    let da = product(b, &z, false, true) - product(a, &(&xz + adjoint(&xz)), false, false);
    [da, product(a, &z, false, false)]
}

fn wide_gradients([a, b, regularizer, _, dy]: &[Output; 5]) -> [Output; 2] {
    let solved = solver(a, regularizer, false);
    let (db, z) = (solved(&product(a, dy, false, false)), solved(b));
    let first = product(&db, &product(&z, a, true, false), false, false);
    let second = product(&z, &(dy - product(a, &db, true, false)), false, true);
    [second - first, db]
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let fast = setup.bool("fast")?;
    for_matrices!(setup, setup.dtype("T")?, T => move |ctx: &Ctx<'_>, inputs: &[Tensor]| run::<T>(ctx, inputs, fast))
}

fn run<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor], fast: bool) -> Result<Outputs> {
    let (a, b) = Matrices::<T>::pair(inputs)?;
    if a.rows != b.rows {
        return Err(invalid!("Input matrix and rhs are incompatible."));
    }
    if inputs[2].shape().rank() != 0 {
        return Err(invalid!("l2_regularizer must be scalar, got shape {}", inputs[2].shape()));
    }
    let regularizer = inputs[2].to_scalar::<f64>()?;
    if regularizer.is_nan() || regularizer < 0.0 {
        return Err(invalid!("l2_regularizer must be >= 0."));
    }
    let shape = a.shape(&[a.cols, b.cols])?;
    if a.rows == 0 || a.cols == 0 || b.cols == 0 {
        return Ok(outputs![Tensor::zeros::<T>(shape)?]);
    }
    let problem = |number| Problem { a: a.get(number), b: b.get(number), rows: a.rows, cols: a.cols, width: b.cols };
    let results = map(ctx, a.count(), cubic(a.rows, a.cols), |number| match fast {
        true => problem(number).normal_equations(ctx, regularizer),
        false => Ok(problem(number).pseudo_inverse()),
    })?;
    Ok(outputs![gathered(shape, results)?])
}

struct Problem<'a, T> {
    a: &'a [T],
    b: &'a [T],
    rows: usize,
    cols: usize,
    width: usize,
}

impl<T: Number> Problem<'_, T> {
    fn normal_equations(&self, ctx: &Ctx<'_>, regularizer: f64) -> Result<Vec<T>> {
        let (rows, cols, width, pool) = (self.rows, self.cols, self.width, ctx.pool());
        let adjoint = linalg::adjoint(self.a, rows, cols);
        let (a, back) = (Matrix::new(self.a, rows, cols), Matrix::new(&adjoint, cols, rows));
        let high = rows >= cols;
        let size = rows.min(cols);
        let mut gramian = vec![T::default(); size * size];
        if high {
            matmul(pool, back, a, &mut gramian)
        } else {
            matmul(pool, a, back, &mut gramian)
        }
        let extra = T::from_real(<T as Scalar>::Real::of(regularizer));
        gramian.iter_mut().step_by(size + 1).for_each(|value| *value = *value + extra);
        if !linalg::cholesky(pool, &mut gramian, size) {
            let advice = if high { "a larger l2_regularizer" } else { "an l2_regularizer" };
            return Err(invalid!(
                "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide {advice} > 0."
            ));
        }
        let mut x = self.b.to_vec();
        if high {
            x = vec![T::default(); cols * width];
            matmul(pool, back, Matrix::new(self.b, rows, width), &mut x);
        }
        linalg::solve_lower(pool, &gramian, size, false, &mut x, width);
        linalg::solve_upper(pool, &linalg::adjoint(&gramian, size, size), size, &mut x, width);
        if high {
            return Ok(x);
        }
        let mut result = vec![T::default(); cols * width];
        matmul(pool, back, Matrix::new(&x, rows, width), &mut result);
        Ok(result)
    }

    /// Singular values that are as good as zero count as zero, so that the solution is the shortest.
    fn pseudo_inverse(&self) -> Vec<T> {
        let (rows, cols, width) = (self.rows, self.cols, self.width);
        let mut result = vec![T::default(); cols * width];
        let Some(parts) = linalg::svd(self.a, rows, cols, true, false) else {
            result.fill(T::from_real(<T as Scalar>::Real::of(f64::NAN)));
            return result;
        };
        let size = rows.min(cols);
        let smallest = parts.values[0] * <T as Scalar>::Real::EPSILON * <T as Scalar>::Real::of(size as f64);
        for (number, &value) in parts.values.iter().enumerate().filter(|(_, value)| **value > smallest) {
            let (u, v) = (&parts.left[number * rows..][..rows], &parts.right[number * cols..][..cols]);
            let inverse = <<T as Scalar>::Real as Scalar>::ONE / value;
            for col in 0..width {
                let sum = (0..rows).fold(T::default(), |sum, row| sum + u[row].conjugate() * self.b[row * width + col]);
                let factor = sum.scale(inverse);
                (0..cols).for_each(|row| result[row * width + col] = result[row * width + col] + v[row] * factor);
            }
        }
        result
    }
}
