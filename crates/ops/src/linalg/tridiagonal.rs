//! TridiagonalMatMul and TridiagonalSolve, for matrices stored as three diagonals.

use super::batch::{Matrices, Number, gathered, map};
use crate::array::nodes;
use graph::{Node, Output};
use math::linalg::{RealScalar, Scalar};
use op::{Ctx, Grad, Grads, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "TridiagonalMatMul(superdiag: T, maindiag: T, subdiag: T, rhs: T) -> output: T; \
              T: {double, float, complex64, complex128}",
        shape: |query: &ShapeQuery<'_>| Ok(vec![query.inputs[3].clone()]),
        grad: Grad::Rule(product_rule),
        kernel: product_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TridiagonalSolve(diagonals: T, rhs: T) -> output: T; partial_pivoting: bool = true; \
              perturb_singular: bool = false; T: {double, float, complex64, complex128}",
        shape: solve_shape,
        grad: Grad::Rule(solve_rule),
        kernel: solve_kernel,
        facts: PLAIN,
    },
];

fn solve_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[1].clone()])
}

/// The product of tridiagonal matrices, each diagonal one row, with `rhs`.
pub fn tridiagonal_matmul(above: &Output, main: &Output, below: &Output, rhs: &Output) -> Output {
    rhs.scope().op("TridiagonalMatMul").input(above).input(main).input(below).input(rhs).output()
}

/// The `x` with `a x = rhs`, where the three rows of `diagonals` are those above, on and below the diagonal of `a`.
pub fn tridiagonal_solve(diagonals: &Output, rhs: &Output, partial_pivoting: bool) -> Output {
    let builder = rhs.scope().op("TridiagonalSolve").input(diagonals).input(rhs);
    builder.attr("partial_pivoting", partial_pivoting).output()
}

fn conjugate(x: &Output) -> Output {
    if x.dtype().is_complex() { nodes::one("Conj", x) } else { x.clone() }
}

/// Shifts rows up or down by one, with a row of zeros in the gap.
fn shifted(x: &Output, up: bool) -> Output {
    let scope = x.scope();
    let outer = nodes::zeros_like(&nodes::part(&nodes::shape(x, DType::I32), 2, None));
    let begin = nodes::concat(&[&outer, &nodes::ints(scope, &[i32::from(up), 0])]);
    let dims = nodes::shape(x, DType::I32);
    let size = &dims - nodes::concat(&[&outer, &nodes::ints(scope, &[1, 0])]);
    let kept = scope.op("Slice").input(x).input(&begin).input(&size).output();
    let row = nodes::concat(&[&outer, &nodes::ints(scope, &[i32::from(!up), 0])]);
    let after = nodes::concat(&[&outer, &nodes::ints(scope, &[i32::from(up), 0])]);
    let paddings = scope.op("Pack").inputs([&row, &after]).attr("axis", 1_i64).output();
    scope.op("Pad").input(&kept).input(&paddings).output()
}

fn product_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [above, main, below, rhs] = op.inputs()?;
    let rhs = conjugate(&rhs);
    let last = nodes::ints(dy.scope(), &[-1]);
    let along = |x: &Output| nodes::expand(&nodes::sum(&(x * dy), &last, false), -2);
    let column = |x: &Output| super::nodes::adjoint(x);
    let back = shifted(&(column(&above) * dy), false) + column(&main) * dy + shifted(&(column(&below) * dy), true);
    Ok(grads![along(&shifted(&rhs, true)), along(&rhs), along(&shifted(&rhs, false)), back])
}

/// With a x = b:  db = a^-' dx  and  da = -db x', of which only the diagonals count.
fn solve_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (diagonals, x) = (op.input(0), op.output(0));
    let scope = x.scope();
    let row = |number: i32| crate::array::gather::gather_along(&diagonals, &nodes::ints(scope, &[number]), -2, 0);
    let turned = |x: &Output, up: bool| super::nodes::adjoint(&shifted(&super::nodes::adjoint(x), up));
    let (above, main, below) = (row(0), conjugate(&row(1)), row(2));
    let rows = [turned(&below, true), main, turned(&above, false)];
    let transposed = scope.op("ConcatV2").inputs(&rows).input(&nodes::int(scope, -2)).output();
    let db = tridiagonal_solve(&transposed, dy, op.attr_bool("partial_pivoting")?);
    let x = conjugate(&x);
    let last = nodes::ints(scope, &[-1]);
    let along = |x: &Output| nodes::expand(&nodes::sum(&(x * &db), &last, false), -2);
    let parts = [along(&shifted(&x, true)), along(&x), along(&shifted(&x, false))];
    let da = -scope.op("ConcatV2").inputs(&parts).input(&nodes::int(scope, -2)).output();
    Ok(grads![da, db])
}

fn product_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_matrices!(setup, setup.dtype("T")?, T => run_product::<T>)
}

fn run_product<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor]) -> Result<Outputs> {
    let rhs = Matrices::<T>::of(&inputs[3], 3)?;
    let (n, width) = (rhs.rows, rhs.cols);
    let mut diagonals = Vec::new();
    for (number, name) in ["superdiagonal", "main diagonal", "subdiagonal"].into_iter().enumerate() {
        let diagonal = Matrices::<T>::of(&inputs[number], number)?;
        if diagonal.batch.len() != rhs.batch.len() {
            return Err(invalid!("All input tensors must have the same rank."));
        }
        if diagonal.batch != rhs.batch {
            return Err(invalid!("All input tensors must have the same outer dimensions."));
        }
        if (diagonal.rows, diagonal.cols) != (1, n) {
            return Err(invalid!("Invalid {name} shape."));
        }
        diagonals.push(diagonal);
    }
    let results = map(ctx, rhs.count(), (n * width) as f64, |number| {
        let (x, [above, main, below]) = (rhs.get(number), [0, 1, 2].map(|at| diagonals[at].get(number)));
        let value = |place: usize| {
            let row = place / width;
            let mut sum = main[row] * x[place];
            if row > 0 {
                sum = sum + below[row] * x[place - width];
            }
            if row + 1 < n { sum + above[row] * x[place + width] } else { sum }
        };
        Ok((0..n * width).map(value).collect::<Vec<T>>())
    })?;
    Ok(outputs![gathered(rhs.shape(&[n, width])?, results)?])
}

fn solve_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (pivoting, perturb) = (setup.bool("partial_pivoting")?, setup.bool("perturb_singular")?);
    if perturb && !pivoting {
        return Err(invalid!("Setting perturb_singular requires also setting partial_pivoting."));
    }
    for_matrices!(setup, setup.dtype("T")?, T => move |ctx: &Ctx<'_>, inputs: &[Tensor]| run_solve::<T>(ctx, inputs, pivoting))
}

fn run_solve<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor], pivoting: bool) -> Result<Outputs> {
    let (diagonals, rhs) = Matrices::<T>::pair(inputs)?;
    if diagonals.rows != 3 {
        return Err(invalid!(
            "Expected diagonals to be provided as a matrix with 3 rows, got {} rows.",
            diagonals.rows
        ));
    }
    if diagonals.cols != rhs.rows {
        return Err(invalid!(
            "Expected the same number of left-hand sides and right-hand sides, got {} and {}.",
            diagonals.cols,
            rhs.rows
        ));
    }
    let (n, width) = (rhs.rows, rhs.cols);
    let results = map(ctx, rhs.count(), 10.0 * (n * width) as f64, |number| {
        let mut x = rhs.get(number).to_vec();
        solve(diagonals.get(number), n, &mut x, width, pivoting);
        Ok(x)
    })?;
    Ok(outputs![gathered(rhs.shape(&[n, width])?, results)?])
}

/// Elimination row by row; a row exchanged with the next may reach one column farther. Where the matrix cannot be
/// inverted the result is not a number.
fn solve<T: Number>(diagonals: &[T], n: usize, x: &mut [T], width: usize, pivoting: bool) {
    if n == 0 || width == 0 {
        return;
    }
    let zero = T::default();
    let nan = T::from_real(<T as Scalar>::Real::of(f64::NAN));
    let (above, main, below) = (&diagonals[..n], &diagonals[n..2 * n], &diagonals[2 * n..]);
    // Row `i` of the triangle: its diagonal, and the two numbers right of it.
    let mut rows: Vec<[T; 3]> = (0..n).map(|i| [main[i], if i + 1 < n { above[i] } else { zero }, zero]).collect();
    for i in 0..n - 1 {
        let mut next = [below[i + 1], rows[i + 1][0], rows[i + 1][1]];
        if pivoting && next[0].modulus_squared() > rows[i][0].modulus_squared() {
            std::mem::swap(&mut rows[i], &mut next);
            let (first, second) = x[i * width..].split_at_mut(width);
            first.swap_with_slice(&mut second[..width]);
        }
        if rows[i][0] == zero {
            return x.fill(nan);
        }
        let factor = next[0] / rows[i][0];
        rows[i + 1] = [next[1] - factor * rows[i][1], next[2] - factor * rows[i][2], zero];
        let (first, second) = x[i * width..].split_at_mut(width);
        second[..width].iter_mut().zip(first).for_each(|(value, before)| *value = *value - factor * *before);
    }
    if rows[n - 1][0] == zero {
        return x.fill(nan);
    }
    for i in (0..n).rev() {
        for col in 0..width {
            let mut value = x[i * width + col];
            for reach in 1..3.min(n - i) {
                value = value - rows[i][reach] * x[(i + reach) * width + col];
            }
            x[i * width + col] = value / rows[i][0];
        }
    }
}
