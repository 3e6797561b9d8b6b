//! SelfAdjointEig, SelfAdjointEigV2 and Eig: eigenvalues and eigenvectors.

use super::batch::{Matrices, Number, cubic, gathered, map, matrix_dims, transposed};
use super::inverse::matrix_solve;
use super::nodes::{adjoint, product, safe_reciprocal};
use crate::array::matrix_band_part::matrix_band_part;
use crate::array::matrix_diag::{matrix_diag, matrix_diag_part};
use crate::array::matrix_set_diag::matrix_set_diag;
use crate::array::nodes;
use graph::{AttrValue, Node, Output};
use math::linalg::{self, Scalar, eigenvectors, schur};
use op::{Ctx, Grad, Grads, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, outputs};
use status::{Result, invalid};
use tensor::{Complex64, DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SelfAdjointEigV2(input: T) -> e: T, v: T; compute_v: bool = true; T: {double, float, half, complex64, complex128}",
        shape: eig_shape,
        grad: Grad::Rules(self_adjoint_rule),
        kernel: self_adjoint_kernel,
        facts: PLAIN,
    },
    Op {
        def: "BatchSelfAdjointEigV2(input: T) -> e: T, v: T; compute_v: bool = true; T: {double, float}",
        shape: eig_shape,
        grad: Grad::Unknown,
        kernel: self_adjoint_kernel,
        facts: PLAIN.removed_in(13, "Use SelfAdjointEigV2 instead."),
    },
    Op {
        def: "SelfAdjointEig(input: T) -> output: T; T: {double, float, half}",
        shape: joined_shape,
        grad: Grad::Unknown,
        kernel: joined_kernel,
        facts: PLAIN.removed_in(11, "Use SelfAdjointEigV2 instead."),
    },
    Op {
        def: "BatchSelfAdjointEig(input: T) -> output: T; T: {double, float}",
        shape: joined_shape,
        grad: Grad::Unknown,
        kernel: joined_kernel,
        facts: PLAIN.removed_in(11, "Use SelfAdjointEigV2 instead."),
    },
    Op {
        def: "Eig(input: T) -> e: Tout, v: Tout; compute_v: bool = true; T: {float, double, complex64, complex128}; \
              Tout: {complex64, complex128}",
        shape: eig_shape,
        grad: Grad::Rules(eig_rule),
        kernel: eig_kernel,
        facts: PLAIN,
    },
];

/// Eigenvalues of self-adjoint matrices in rising order, and eigenvectors as columns.
pub fn self_adjoint_eig(input: &Output) -> (Output, Output) {
    let node = input.scope().op("SelfAdjointEigV2").input(input).node();
    (node.output(0), node.output(1))
}

/// Eigenvalues of matrices, and eigenvectors as columns; both complex.
pub fn eig(input: &Output, out_type: DType) -> (Output, Output) {
    let node = input.scope().op("Eig").input(input).attr("Tout", out_type).node();
    (node.output(0), node.output(1))
}

fn eig_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some((batch, rows, cols)) = matrix_dims(&query.inputs[0])? else { return Ok(vec![PartialShape::unknown(); 2]) };
    let size = rows.max(cols);
    let vectors = match query.attr("compute_v")? {
        AttrValue::Bool(false) => PartialShape::new(&[0]),
        _ => PartialShape::new(&[batch, &[size, size]].concat()),
    };
    Ok(vec![PartialShape::new(&[batch, &[size]].concat()), vectors])
}

fn joined_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some((batch, rows, cols)) = matrix_dims(&query.inputs[0])? else { return Ok(vec![PartialShape::unknown()]) };
    let size = rows.max(cols);
    Ok(vec![PartialShape::new(&[batch, &[if size < 0 { -1 } else { size + 1 }, size]].concat())])
}

/// Reciprocals of the gaps between eigenvalues, zero on the diagonal.
fn gaps(e: &Output) -> Output {
    let gaps = nodes::expand(e, -2) - nodes::expand(e, -1);
    matrix_set_diag(&safe_reciprocal(&gaps), &nodes::zeros_like(e))
}

/// Only the lower triangle is read, so only it has a gradient.
fn self_adjoint_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let (e, computed) = (op.output(0), op.attr_bool("compute_v")?);
    let v = if computed { op.output(1) } else { self_adjoint_eig(&op.input(0)).1 };
    let de = dys[0].clone().unwrap_or_else(|| nodes::zeros_like(&e));
    let mut middle = matrix_diag(&de);
    if let Some(dv) = dys[1].as_ref().filter(|_| computed) {
        middle = middle + gaps(&e) * product(&v, dv, true, false);
    }
    let da = product(&v, &product(&middle, &v, false, true), false, false);
    let da = matrix_band_part(&(&da + adjoint(&da)), -1, 0);
    Ok(grads![matrix_set_diag(&da, &(matrix_diag_part(&da) * 0.5))])
}

fn eig_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let (a, e, computed) = (op.input(0), op.output(0), op.attr_bool("compute_v")?);
    let v = if computed { op.output(1) } else { eig(&a, e.dtype()).1 };
    let back = adjoint(&v);
    let de = dys[0].clone().unwrap_or_else(|| nodes::zeros_like(&e));
    let mut middle = matrix_diag(&de);
    if let Some(dv) = dys[1].as_ref().filter(|_| computed) {
        let along = product(&back, dv, false, false);
        let real = if e.dtype() == DType::C64 { DType::F32 } else { DType::F64 };
        let part = nodes::cast(&a.scope().op("Real").input(&along).attr("Tout", real).output(), e.dtype());
        let turned = product(&product(&back, &v, false, false), &matrix_diag(&matrix_diag_part(&part)), false, false);
        middle = middle + nodes::one("Conj", &gaps(&e)) * (along - turned);
    }
    let da = matrix_solve(&back, &product(&middle, &back, false, false), false);
    Ok(grads![nodes::cast(&da, a.dtype())])
}

fn self_adjoint_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let vectors = setup.bool("compute_v")?;
    for_matrices!(setup, setup.dtype("T")?, T => move |ctx: &Ctx<'_>, inputs: &[Tensor]| {
        let sentence = "Self-adjoint eigen decomposition was not successful. The input might not be valid.";
        let (a, results) = decomposed::<T>(ctx, inputs, vectors, sentence)?;
        let (values, rows): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        let n = a.rows;
        let e = gathered(a.shape(&[n])?, values)?;
        match vectors {
            true => Ok(outputs![e, gathered(a.shape(&[n, n])?, rows.iter().map(|rows| transposed(rows, n, n)))?]),
            false => Ok(outputs![e, Tensor::zeros::<T>([0])?]),
        }
    })
}

/// Eigenvalues stand in the first row, eigenvectors in the columns below.
fn joined_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_matrices!(setup, setup.dtype("T")?, T => |ctx: &Ctx<'_>, inputs: &[Tensor]| {
        let sentence = "Self Adjoint Eigen decomposition wasnot successful. The input might not be valid.";
        let (a, results) = decomposed::<T>(ctx, inputs, true, sentence)?;
        let n = a.rows;
        let joined = results.into_iter().map(|(mut values, rows)| {
            values.extend(transposed(&rows, n, n));
            values
        });
        Ok(outputs![gathered(a.shape(&[n + 1, n])?, joined)?])
    })
}

type Decomposed<'a, T> = (Matrices<'a, T>, Vec<(Vec<T>, Vec<T>)>);

fn decomposed<'a, T: Number>(
    ctx: &Ctx<'_>,
    inputs: &'a [Tensor],
    vectors: bool,
    sentence: &str,
) -> Result<Decomposed<'a, T>> {
    let a = Matrices::<T>::square(&inputs[0])?;
    let n = a.rows;
    let results = map(ctx, a.count(), 10.0 * cubic(n, n), |number| {
        let found = linalg::self_adjoint_eigen(a.get(number), n, vectors);
        let (values, rows) = found.ok_or_else(|| invalid!("{sentence}"))?;
        Ok((values.into_iter().map(T::from_real).collect(), rows))
    })?;
    Ok((a, results))
}

fn eig_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (vectors, out_type) = (setup.bool("compute_v")?, setup.dtype("Tout")?);
    for_matrices!(setup, setup.dtype("T")?, T => move |ctx: &Ctx<'_>, inputs: &[Tensor]| match out_type {
        DType::C64 => run_eig::<T, tensor::Complex32>(ctx, inputs, vectors),
        _ => run_eig::<T, Complex64>(ctx, inputs, vectors),
    })
}

fn run_eig<T: Number, C: Number>(ctx: &Ctx<'_>, inputs: &[Tensor], vectors: bool) -> Result<Outputs> {
    let a = Matrices::<T>::square(&inputs[0])?;
    let n = a.rows;
    let results = map(ctx, a.count(), 25.0 * cubic(n, n), |number| {
        let wide: Vec<Complex64> = a.get(number).iter().map(|&value| Scalar::to_complex(value)).collect();
        let form = schur(&wide, n);
        let form =
            form.ok_or_else(|| invalid!("Eigen decomposition was not successful. The input might not be valid."))?;
        let values: Vec<C> = (0..n).map(|at| C::from_complex(form.t[at * n + at])).collect();
        let rows = if vectors { eigenvectors(&form, n) } else { Vec::new() };
        Ok((values, rows.into_iter().map(C::from_complex).collect::<Vec<C>>()))
    })?;
    let (values, columns): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let e = gathered(a.shape(&[n])?, values)?;
    match vectors {
        true => Ok(outputs![e, gathered(a.shape(&[n, n])?, columns)?]),
        false => Ok(outputs![e, Tensor::zeros::<C>([0])?]),
    }
}
