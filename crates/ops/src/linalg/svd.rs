//! Svd: singular values and vectors.

use super::batch::{Matrices, Number, cubic, gathered, map, matrix_dims, transposed};
use super::nodes::{adjoint, product, safe_reciprocal};
use super::qr::columns;
use crate::array::matrix_diag::{matrix_diag, matrix_diag_part};
use crate::array::matrix_set_diag::matrix_set_diag;
use crate::array::nodes;
use graph::{AttrValue, Node, Output};
use math::linalg::{self, RealScalar, Scalar};
use op::{Ctx, Grad, Grads, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Svd(input: T) -> s: T, u: T, v: T; compute_uv: bool = true; full_matrices: bool = false; \
              T: {double, float, half, complex64, complex128}",
        shape: svd_shape,
        grad: Grad::Rules(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "BatchSvd(input: T) -> s: T, u: T, v: T; compute_uv: bool = true; full_matrices: bool = false; \
              T: {double, float, complex64, complex128}",
        shape: svd_shape,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN.removed_in(13, "Use Svd instead."),
    },
];

/// Singular values in falling order, and left and right singular vectors as columns.
pub fn svd(input: &Output, full_matrices: bool) -> (Output, Output, Output) {
    let node = input.scope().op("Svd").input(input).attr("full_matrices", full_matrices).node();
    (node.output(0), node.output(1), node.output(2))
}

fn svd_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some((batch, rows, cols)) = matrix_dims(&query.inputs[0])? else { return Ok(vec![PartialShape::unknown(); 3]) };
    let flag = |name: &str| matches!(query.attr(name), Ok(AttrValue::Bool(true)));
    let size = if rows < 0 || cols < 0 { -1 } else { rows.min(cols) };
    let shape = |dims: &[i64]| PartialShape::new(&[batch, dims].concat());
    Ok(match (flag("compute_uv"), flag("full_matrices")) {
        (false, _) => vec![shape(&[size]), PartialShape::new(&[0]), PartialShape::new(&[0])],
        (true, true) => vec![shape(&[size]), shape(&[rows, rows]), shape(&[cols, cols])],
        (true, false) => vec![shape(&[size]), shape(&[rows, size]), shape(&[cols, size])],
    })
}

fn rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let a = op.input(0);
    let given = |output: usize| dys[output].clone().unwrap_or_else(|| nodes::zeros_like(&op.output(output)));
    if !op.attr_bool("compute_uv")? {
        let (_, u, v) = svd(&a, false);
        return Ok(grads![product(&u, &product(&matrix_diag(&given(0)), &v, false, true), false, false)]);
    }
    let shape = a.shape();
    let known = shape.rank().and_then(|rank| shape.dim(rank.checked_sub(2)?).zip(shape.dim(rank - 1)));
    let Some((rows, cols)) = known else {
        return Err(invalid!("SVD gradient has not been implemented for input with unknown inner matrix shape."));
    };
    let full = op.attr_bool("full_matrices")?;
    if full && rows.abs_diff(cols) > 1 {
        return Err(invalid!("svd gradient is not implemented for abs(m - n) > 1 when full_matrices is True."));
    }
    let parts = Parts { s: op.output(0), ds: given(0), full };
    // The formula is for matrices at least as wide as high: of others it takes the adjoint.
    let da = match rows > cols {
        true => adjoint(&parts.rule([&op.output(2), &op.output(1)], [&given(2), &given(1)], cols, rows)),
        false => parts.rule([&op.output(1), &op.output(2)], [&given(1), &given(2)], rows, cols),
    };
    Ok(grads![da])
}

struct Parts {
    s: Output,
    ds: Output,
    full: bool,
}

impl Parts {
    /// The gradient of a matrix with `rows <= cols`.
    fn rule(&self, [u, v]: [&Output; 2], [du, dv]: [&Output; 2], rows: usize, cols: usize) -> Output {
        let s = &self.s;
        let squares = s * s;
        let gaps = nodes::expand(&squares, -2) - nodes::expand(&squares, -1);
        let f = matrix_set_diag(&safe_reciprocal(&gaps), &nodes::zeros_like(s));
        let inverse = matrix_diag(&safe_reciprocal(s));
        let values = matrix_diag(s);
        let (v1, dv1) = (columns(v, 0, rows as i32), columns(dv, 0, rows as i32));
        let v_dv = product(&v1, &dv1, true, false);
        let fu = &f * product(u, du, true, false);
        let fv = &f * &v_dv;
        let middle = matrix_diag(&self.ds)
            + product(&(&fu + adjoint(&fu)), &values, false, false)
            + product(&values, &(&fv + adjoint(&fv)), false, false);
        let around = |middle: &Output| product(u, &product(middle, &v1, false, true), false, false);
        let mut da = around(&middle);
        if rows < cols {
            let back = adjoint(&dv1);
            let mut rest = &back - product(&product(&back, &v1, false, false), &v1, false, true);
            if self.full {
                let count = (cols - rows) as i32;
                let (v2, dv2) = (columns(v, rows as i32, count), columns(dv, rows as i32, count));
                rest = rest - product(&product(&v1, &dv2, true, false), &v2, false, true);
            }
            da = da + product(&product(u, &inverse, false, false), &rest, false, false);
        }
        if s.dtype().is_complex() {
            let diagonal = matrix_diag(&matrix_diag_part(&v_dv));
            let extra = product(&inverse, &(adjoint(&diagonal) - &diagonal), false, false);
            da = da + around(&extra) * 0.5;
        }
        da
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (vectors, full) = (setup.bool("compute_uv")?, setup.bool("full_matrices")?);
    for_matrices!(setup, setup.dtype("T")?, T => move |ctx: &Ctx<'_>, inputs: &[Tensor]| run::<T>(ctx, inputs, vectors, full))
}

fn run<T: Number>(ctx: &Ctx<'_>, inputs: &[Tensor], vectors: bool, full: bool) -> Result<Outputs> {
    let a = Matrices::<T>::of(&inputs[0], 0)?;
    let (rows, cols, size) = (a.rows, a.cols, a.rows.min(a.cols));
    let (left, right) = if full { (rows, cols) } else { (size, size) };
    let results = map(ctx, a.count(), 12.0 * cubic(rows, cols), |number| {
        if size == 0 {
            return Ok((Vec::new(), linalg::identity(rows, left), linalg::identity(cols, right)));
        }
        let nan = T::from_real(<T as Scalar>::Real::of(f64::NAN));
        match linalg::svd(a.get(number), rows, cols, vectors, full) {
            None => Ok((vec![nan; size], vec![nan; rows * left], vec![nan; cols * right])),
            Some(parts) => {
                let values = parts.values.into_iter().map(T::from_real).collect();
                let columns = |vectors: &[T], count, length| {
                    if vectors.is_empty() { Vec::new() } else { transposed(vectors, count, length) }
                };
                Ok((values, columns(&parts.left, left, rows), columns(&parts.right, right, cols)))
            }
        }
    })?;
    let mut values = Vec::new();
    let (mut u, mut v) = (Vec::new(), Vec::new());
    for (s, left, right) in results {
        values.push(s);
        u.push(left);
        v.push(right);
    }
    let s = gathered(a.shape(&[size])?, values)?;
    if !vectors {
        return Ok(outputs![s, Tensor::zeros::<T>([0])?, Tensor::zeros::<T>([0])?]);
    }
    Ok(outputs![s, gathered(a.shape(&[rows, left])?, u)?, gathered(a.shape(&[cols, right])?, v)?])
}
