//! Qr: unitary and upper triangular factors.

use super::batch::{Matrices, Number, cubic, gathered, map, matrix_dims};
use super::nodes::{adjoint, product};
use super::triangular_solve::triangular_solve;
use crate::array::matrix_band_part::matrix_band_part;
use crate::array::matrix_diag::{matrix_diag, matrix_diag_part};
use crate::array::nodes;
use graph::{AttrValue, Node, Output};
use math::linalg;
use op::{Ctx, Grad, Grads, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "Qr(input: T) -> q: T, r: T; full_matrices: bool = false; T: {double, float, half, complex64, complex128}",
    shape: qr_shape,
    grad: Grad::Rules(rule),
    kernel,
    facts: PLAIN,
}];

/// Factors `q r` of matrices, `q` unitary and `r` upper triangular.
pub fn qr(input: &Output, full_matrices: bool) -> (Output, Output) {
    let node = input.scope().op("Qr").input(input).attr("full_matrices", full_matrices).node();
    (node.output(0), node.output(1))
}

fn qr_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some((batch, rows, cols)) = matrix_dims(&query.inputs[0])? else { return Ok(vec![PartialShape::unknown(); 2]) };
    let full = matches!(query.attr("full_matrices")?, AttrValue::Bool(true));
    let inner = if full {
        rows
    } else if rows < 0 || cols < 0 {
        -1
    } else {
        rows.min(cols)
    };
    let shape = |dims: [i64; 2]| PartialShape::new(&[batch, &dims].concat());
    Ok(vec![shape([rows, inner]), shape([inner, cols])])
}

/// The columns `begin .. end` of matrices; an end of -1 means all.
pub(super) fn columns(x: &Output, begin: i32, count: i32) -> Output {
    let scope = x.scope();
    let outer = nodes::zeros_like(&nodes::part(&nodes::shape(x, tensor::DType::I32), 1, None));
    let begin = nodes::concat(&[&outer, &nodes::ints(scope, &[begin])]);
    let size = nodes::concat(&[&(outer - 1.0), &nodes::ints(scope, &[count])]);
    scope.op("Slice").input(x).input(&begin).input(&size).output()
}

fn rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let (a, q, r) = (op.input(0), op.output(0), op.output(1));
    let shape = a.shape();
    let known = shape.rank().and_then(|rank| shape.dim(rank.checked_sub(2)?).zip(shape.dim(rank - 1)));
    let Some((rows, cols)) = known else { return Err(invalid!("QrGrad not implemented with dynamic shapes.")) };
    if rows > cols && op.attr_bool("full_matrices")? {
        return Err(invalid!("QrGrad not implemented when nrows > ncols and full_matrices is true."));
    }
    let dq = dys[0].clone().unwrap_or_else(|| nodes::zeros_like(&q));
    let dr = dys[1].clone().unwrap_or_else(|| nodes::zeros_like(&r));
    if rows >= cols {
        return Ok(grads![high_rule(&q, &r, &dq, &dr)]);
    }
    // A wide matrix is a square one and more columns, of which q knows nothing.
    let (rows, rest) = (rows as i32, (cols - rows) as i32);
    let (y, dv) = (columns(&a, rows, rest), columns(&dr, rows, rest));
    let dq = dq + product(&y, &dv, false, true);
    let dx = high_rule(&q, &columns(&r, 0, rows), &dq, &columns(&dr, 0, rows));
    let dy = product(&q, &dv, false, false);
    let scope = a.scope();
    Ok(grads![scope.op("ConcatV2").inputs([&dx, &dy]).input(&nodes::int(scope, -1)).output()])
}

/// For matrices that are at least as high as wide.
fn high_rule(q: &Output, r: &Output, dq: &Output, dr: &Output) -> Output {
    let over_r = |x: &Output| adjoint(&triangular_solve(r, &adjoint(x), false, false));
    let qdq = product(q, dq, true, false);
    let rdr = product(r, dr, false, true);
    let skew = (&qdq - adjoint(&qdq)) + (&rdr - adjoint(&rdr));
    let inside = product(q, &(dr + over_r(&matrix_band_part(&skew, -1, 0))), false, false);
    let outside = over_r(&(dq - product(q, &qdq, false, false)));
    let da = inside + outside;
    if !q.dtype().is_complex() {
        return da;
    }
    // The diagonal of r is real: an imaginary part in the formula's result is dropped.
    let diagonal = matrix_diag(&matrix_diag_part(&(rdr - adjoint(&qdq))));
    let real = if q.dtype() == tensor::DType::C64 { tensor::DType::F32 } else { tensor::DType::F64 };
    let part = q.scope().op("Real").input(&diagonal).attr("Tout", real).output();
    let extra = &diagonal - nodes::cast(&part, q.dtype());
    da + over_r(&product(q, &adjoint(&extra), false, false))
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let full = setup.bool("full_matrices")?;
    for_matrices!(setup, setup.dtype("T")?, T => move |ctx: &Ctx<'_>, inputs: &[Tensor]| run::<T>(ctx, inputs, full))
}

fn run<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor], full: bool) -> Result<Outputs> {
    let a = Matrices::<T>::of(&inputs[0], 0)?;
    let (rows, cols) = (a.rows, a.cols);
    let inner = if full { rows } else { rows.min(cols) };
    let results = map(ctx, a.count(), 2.0 * cubic(rows, cols), |number| {
        if rows == 0 || cols == 0 {
            return Ok((linalg::identity(rows, inner), vec![T::default(); inner * cols]));
        }
        let factors = linalg::qr(a.get(number), rows, cols);
        Ok((factors.q(inner), factors.r(inner)))
    })?;
    let (q, r): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    Ok(outputs![gathered(a.shape(&[rows, inner])?, q)?, gathered(a.shape(&[inner, cols])?, r)?])
}
