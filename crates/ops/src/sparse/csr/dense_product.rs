//! SparseMatrixMatMul: the product of a sparse matrix and a dense one.

use super::convert::{csr_sparse_matrix_to_sparse_tensor, sparse_tensor_to_csr_sparse_matrix};
use super::for_fields;
use super::matrix::{Csr, Number};
use super::transpose::transposed;
use crate::array::gather_nd::gather_nd;
use crate::array::nodes;
use crate::linalg::transposed_matrix;
use crate::math_ops::complex::conj;
use graph::{Node, Output};
use math::parallel::split_rows_mut;
use op::shapes::unknown;
use op::{Ctx, Grad, Grads, Kernel, Op, PLAIN, Setup, binary, grads};
use status::{Result, invalid};
use tensor::{Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseMatrixMatMul(a: variant, b: T) -> output: T; T: type; transpose_a: bool = false; \
          transpose_b: bool = false; adjoint_a: bool = false; adjoint_b: bool = false; transpose_output: bool = false; \
          conjugate_output: bool = false",
    shape: unknown,
    grad: Grad::Rule(rule),
    kernel,
    facts: PLAIN,
}];

/// What a product does with one of its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Plain,
    Transposed,
    Adjoint,
}

impl Side {
    /// The attributes `transpose_<name>` and `adjoint_<name>`, of which at most one is true.
    pub fn read(name: &str, attr: impl Fn(&str) -> Result<bool>) -> Result<Side> {
        let (transpose, adjoint) = (attr(&format!("transpose_{name}"))?, attr(&format!("adjoint_{name}"))?);
        match (transpose, adjoint) {
            (true, true) => Err(invalid!("Only one of adjoint_{name} and transpose_{name} may be true.")),
            (true, false) => Ok(Side::Transposed),
            (false, true) => Ok(Side::Adjoint),
            (false, false) => Ok(Side::Plain),
        }
    }

    /// Whether rows and columns are exchanged.
    pub fn turns(self) -> bool {
        self != Side::Plain
    }
}

#[derive(Clone, Copy)]
struct Form {
    a: Side,
    b: Side,
    transpose_output: bool,
    conjugate_output: bool,
}

impl Form {
    fn read(attr: impl Fn(&str) -> Result<bool>) -> Result<Form> {
        Ok(Form {
            a: Side::read("a", &attr)?,
            b: Side::read("b", &attr)?,
            transpose_output: attr("transpose_output")?,
            conjugate_output: attr("conjugate_output")?,
        })
    }
}

/// With x y = c: dx = dc y* and dy = x* dc, of which the sparse side needs its own places only.
fn rule(op: &Node, grad: &Output) -> Result<Grads> {
    let form = Form::read(|name| op.attr_bool(name))?;
    let (a, b) = (op.input(0).seen_from(grad.scope()), op.input(1).seen_from(grad.scope()));
    let grad = if form.conjugate_output { conj(grad) } else { grad.clone() };
    Ok(grads![sparse_side(form, &a, &b, &grad), dense_side(form, &a, &grad)])
}

fn dense_side(form: Form, a: &Output, grad: &Output) -> Output {
    let complex = grad.dtype().is_complex();
    let a = if form.a == Side::Transposed && complex { nodes::one("Conj", a) } else { a.clone() };
    let builder = a.scope().op("SparseMatrixMatMul").input(&a).input(grad);
    let builder = builder.attr("adjoint_a", form.a == Side::Plain).attr("transpose_b", form.transpose_output);
    let turned = builder.attr("transpose_output", form.b.turns());
    turned.attr("conjugate_output", form.b == Side::Adjoint).output()
}

fn sparse_side(form: Form, a: &Output, b: &Output, grad: &Output) -> Output {
    let [indices, _, shape] = csr_sparse_matrix_to_sparse_tensor(a, grad.dtype());
    let left = if form.transpose_output { transposed_matrix(grad) } else { grad.clone() };
    let right = match form.b {
        Side::Plain => conj(b),
        Side::Transposed => conj(&transposed_matrix(b)),
        Side::Adjoint => transposed_matrix(b),
    };
    let (rows, columns) = row_and_column(&indices);
    let (at_left, at_right) = if form.a.turns() { (columns, rows) } else { (rows, columns) };
    let products = gather_nd(&left, &at_left) * gather_nd(&right, &at_right);
    let values = nodes::sum(&products, &nodes::ints(grad.scope(), &[1]), false);
    let values = if form.a == Side::Adjoint { conj(&values) } else { values };
    sparse_tensor_to_csr_sparse_matrix(&indices, &values, &shape)
}

/// Indices without their last element, and without the one before it.
fn row_and_column(indices: &Output) -> (Output, Output) {
    let scope = indices.scope();
    let cut = |begin: [i32; 2], end: [i32; 2], end_mask: i64| {
        let strided = scope.op("StridedSlice").input(indices).input(&nodes::ints(scope, &begin));
        let strided = strided.input(&nodes::ints(scope, &end)).input(&nodes::ints(scope, &[1, 1]));
        strided.attr("end_mask", end_mask).output()
    };
    let (outer, last) = (cut([0, 0], [0, -2], 1), cut([0, -1], [0, 0], 3));
    let columns = scope.op("ConcatV2").inputs([&outer, &last]).input(&nodes::int(scope, 1)).output();
    (cut([0, 0], [0, -1], 1), columns)
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let form = Form::read(|name| setup.bool(name))?;
    for_fields!(setup, setup.dtype("T")?, T => Ok(binary(move |ctx, a, b| {
        run::<T>(ctx, &Csr::take(&a, 0)?, &b, form)
    }).heavy()))
}

fn run<T: Number>(ctx: &Ctx<'_>, a: &Csr, b: &Tensor, form: Form) -> Result<Tensor> {
    check(a, b, form)?;
    let turned = form.a.turns().then(|| transposed::<T>(a, form.a == Side::Adjoint)).transpose()?;
    let a = turned.as_ref().unwrap_or(a);
    let rhs = match form.b {
        Side::Plain => b.clone(),
        side => turn::<T>(b, side == Side::Adjoint)?,
    };
    let mut out = product::<T>(ctx, a, &rhs)?;
    if form.transpose_output {
        return turn::<T>(&out, form.conjugate_output);
    }
    if form.conjugate_output {
        out.values_mut::<T>()?.iter_mut().for_each(|value| *value = value.conjugate());
    }
    Ok(out)
}

fn check(a: &Csr, b: &Tensor, form: Form) -> Result<()> {
    if a.dtype() != b.dtype() {
        return Err(invalid!("Input types don't match.  a.dtype == {} vs. b.dtype == {}", a.dtype(), b.dtype()));
    }
    let rank = a.rank();
    if rank != b.shape().rank() {
        return Err(invalid!("Ranks of a and b must match, saw: {rank} vs. {}.", b.shape().rank()));
    }
    let batches = if rank == 2 { 1 } else { b.shape()[0] };
    if a.batches != batches {
        return Err(invalid!("Batch sizes of a and b must match, saw: {} vs. {batches}.", a.batches));
    }
    let inner = if form.a.turns() { a.rows } else { a.columns };
    if inner != b.shape()[if form.b.turns() { rank - 1 } else { rank - 2 }] {
        return Err(invalid!(
            "Inner product dimensions of A and B do not agree. Shapes are: {} vs. {}",
            a.shape()?,
            b.shape()
        ));
    }
    Ok(())
}

/// Dense matrices with rows and columns exchanged.
fn turn<T: Number>(b: &Tensor, conjugate: bool) -> Result<Tensor> {
    let mut dims = b.shape().dims().to_vec();
    let rank = dims.len();
    let (rows, columns) = (dims[rank - 2], dims[rank - 1]);
    dims.swap(rank - 2, rank - 1);
    let mut out = Tensor::scratch::<T>(dims)?;
    let matrix = (rows * columns).max(1);
    for (from, to) in b.values::<T>()?.chunks_exact(matrix).zip(out.values_mut::<T>()?.chunks_exact_mut(matrix)) {
        for (place, value) in to.iter_mut().enumerate() {
            let found = from[place % rows * columns + place / rows];
            *value = if conjugate { found.conjugate() } else { found };
        }
    }
    Ok(out)
}

fn product<T: Number>(ctx: &Ctx<'_>, a: &Csr, b: &Tensor) -> Result<Tensor> {
    let width = b.shape()[a.rank() - 1];
    let mut dims: Vec<i64> = a.dense_shape().values::<i64>()?.to_vec();
    dims[a.rank() - 1] = width as i64;
    let mut out = Tensor::zeros::<T>(Shape::checked(&dims)?)?;
    if out.elements() == 0 {
        return Ok(out);
    }
    let (size, all, table) = (a.columns * width, b.values::<T>()?, out.values_mut::<T>()?);
    for (batch, result) in table.chunks_exact_mut(a.rows * width).enumerate() {
        let (part, rhs) = (a.part::<T>(batch)?, &all[batch * size..][..size]);
        let cost = part.values.len() as f32 / a.rows as f32 + 1.0;
        split_rows_mut(ctx.pool(), cost, result, width, |first, rows| {
            for (number, sums) in rows.chunks_exact_mut(width).enumerate() {
                for (column, value) in part.entries(first + number) {
                    let line = &rhs[column * width..][..width];
                    sums.iter_mut().zip(line).for_each(|(sum, &factor)| *sum = *sum + value * factor);
                }
            }
        });
    }
    Ok(out)
}
