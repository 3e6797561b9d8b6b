//! SparseMatrixSparseMatMul: the product of two sparse matrices.

use super::dense_product::Side;
use super::for_fields;
use super::matrix::{Builder, Csr, Number};
use super::prune::prune;
use super::transpose::{sparse_matrix_transpose, transposed};
use crate::array::nodes;
use graph::{Node, Output};
use op::shapes::scalar;
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, binary, grads};
use status::{Result, invalid};
use tensor::{DType, Shape};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseMatrixSparseMatMul(a: variant, b: variant) -> c: variant; type: {float, double, complex64, complex128}; \
          transpose_a: bool = false; transpose_b: bool = false; adjoint_a: bool = false; adjoint_b: bool = false",
    shape: scalar,
    grad: Grad::Rule(rule),
    kernel,
    facts: PLAIN,
}];

/// With x y = c: dx = dc y* and dy = x* dc, each at the places of its matrix.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let dtype = op.attr_type("type")?;
    let (a_side, b_side) = (Side::read("a", |name| op.attr_bool(name))?, Side::read("b", |name| op.attr_bool(name))?);
    let (a, b) = (op.input(0).seen_from(dy.scope()), op.input(1).seen_from(dy.scope()));
    let product = |left: &Output, right: &Output, adjoint: &str| {
        let builder = left.scope().op("SparseMatrixSparseMatMul").input(left).input(right).attr("type", dtype);
        if adjoint.is_empty() { builder.output() } else { builder.attr(adjoint, true).output() }
    };
    let da = match b_side {
        Side::Plain => product(dy, &b, "adjoint_b"),
        Side::Transposed => product(dy, &conjugate(&b, dtype), ""),
        Side::Adjoint => product(dy, &b, ""),
    };
    let db = match a_side {
        Side::Plain => product(&a, dy, "adjoint_a"),
        Side::Transposed => product(&conjugate(&a, dtype), dy, ""),
        Side::Adjoint => product(&a, dy, ""),
    };
    Ok(grads![prune(&turned(da, a_side, dtype), &a, dtype), prune(&turned(db, b_side, dtype), &b, dtype)])
}

fn conjugate(matrix: &Output, dtype: DType) -> Output {
    if dtype.is_complex() { nodes::one("Conj", matrix) } else { matrix.clone() }
}

fn turned(gradient: Output, side: Side, dtype: DType) -> Output {
    match side {
        Side::Plain => gradient,
        side => sparse_matrix_transpose(&gradient, dtype, side == Side::Adjoint),
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("type")?;
    let sides = (Side::read("a", |name| setup.bool(name))?, Side::read("b", |name| setup.bool(name))?);
    for_fields!(setup, dtype, T => Ok(binary(move |_, a, b| {
        let (a, b) = (Csr::take(&a, 0)?, Csr::take(&b, 1)?);
        a.check_dtype("a", dtype)?;
        b.check_dtype("b", dtype)?;
        run::<T>(&a, &b, sides)?.into_tensor()
    }).heavy()))
}

fn run<T: Number>(a: &Csr, b: &Csr, sides: (Side, Side)) -> Result<Csr> {
    if a.batches != b.batches && a.batches != 1 && b.batches != 1 {
        return Err(invalid!(
            "Batch sizes of A and B are not compatible.  Batch sizes are: {} vs. {}",
            a.batches,
            b.batches
        ));
    }
    if a.rank() != b.rank() {
        return Err(invalid!("Ranks of A and B must match, saw: {} vs. {}", a.rank(), b.rank()));
    }
    let turn = |matrix: &Csr, side: Side| match side {
        Side::Plain => Ok(matrix.clone()),
        side => transposed::<T>(matrix, side == Side::Adjoint),
    };
    let (a, b) = (turn(a, sides.0)?, turn(b, sides.1)?);
    if a.columns != b.rows {
        return Err(invalid!(
            "Inner product dimensions of A and B do not agree.  Shapes are: {} vs. {}",
            a.shape()?,
            b.shape()?
        ));
    }
    product::<T>(&a, &b)
}

fn product<T: Number>(a: &Csr, b: &Csr) -> Result<Csr> {
    let batches = a.batches.max(b.batches);
    let mut dims = vec![a.rows as i64, b.columns as i64];
    if a.rank() == 3 {
        dims.insert(0, batches as i64);
    }
    let mut out = Builder::<T>::new(&dims)?;
    let mut sums = Row::new(b.columns)?;
    for batch in 0..batches {
        let (left, right) = (a.part::<T>(batch % a.batches)?, b.part::<T>(batch % b.batches)?);
        for row in 0..a.rows {
            for (inner, x) in left.entries(row) {
                right.entries(inner).for_each(|(column, y)| sums.add(column, x * y));
            }
            sums.drain(|column, value| out.push(column, value));
            out.end_row()?;
        }
    }
    out.finish()
}

/// The sums of a row: a place for every column, and the columns that have one.
struct Row<T> {
    sums: Vec<Option<T>>,
    columns: Vec<usize>,
}

impl<T: Number> Row<T> {
    fn new(columns: usize) -> Result<Row<T>> {
        Shape::new(&[columns]).checked_elements()?;
        let mut sums = Vec::new();
        let refused = |_| status::exhausted!("OOM when allocating a row of {columns} columns");
        sums.try_reserve_exact(columns).map_err(refused)?;
        sums.resize(columns, None);
        Ok(Row { sums, columns: Vec::new() })
    }

    fn add(&mut self, column: usize, value: T) {
        match &mut self.sums[column] {
            Some(sum) => *sum = *sum + value,
            place => {
                *place = Some(value);
                self.columns.push(column);
            }
        }
    }

    /// Passes on all sums, sorted by column, and removes them.
    fn drain(&mut self, mut each: impl FnMut(usize, T)) {
        self.columns.sort_unstable();
        for column in self.columns.drain(..) {
            if let Some(sum) = self.sums[column].take() {
                each(column, sum);
            }
        }
    }
}
