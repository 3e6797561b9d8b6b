//! SparseMatrixTranspose, and the complex conjugate of a sparse matrix.

use super::for_fields;
use super::matrix::{Builder, Csr, Number, Part};
use graph::{Node, Output};
use op::shapes::scalar;
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, grads, unary};
use status::Result;
use tensor::{Complex32, Complex64, DType};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseMatrixTranspose(input: variant) -> output: variant; conjugate: bool = false; \
          type: {float, double, complex64, complex128}",
    shape: scalar,
    grad: Grad::Rule(rule),
    kernel,
    facts: PLAIN,
}];

/// The transposed matrix, conjugated if asked for.
pub fn sparse_matrix_transpose(input: &Output, dtype: DType, conjugate: bool) -> Output {
    let builder = input.scope().op("SparseMatrixTranspose").input(input);
    builder.attr("type", dtype).attr("conjugate", conjugate).output()
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![sparse_matrix_transpose(dy, op.attr_type("type")?, op.attr_bool("conjugate")?)])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, conjugate) = (setup.dtype("type")?, setup.bool("conjugate")?);
    for_fields!(setup, dtype, T => Ok(unary(move |_, input| {
        let csr = Csr::take(&input, 0)?;
        csr.check_dtype("input", dtype)?;
        transposed::<T>(&csr, conjugate)?.into_tensor()
    })))
}

/// The transposed matrix, conjugated if asked for.
pub(super) fn transposed<T: Number>(csr: &Csr, conjugate: bool) -> Result<Csr> {
    let mut dims = csr.dense_shape().values::<i64>()?.to_vec();
    let rank = dims.len();
    dims.swap(rank - 2, rank - 1);
    let mut out = Builder::<T>::new(&dims)?;
    for batch in 0..csr.batches {
        let part = csr.part::<T>(batch)?;
        let (ends, entries) = by_columns(&part, csr.columns);
        let mut start = 0;
        for &end in &ends {
            for &(row, value) in &entries[start..end] {
                out.push(row, if conjugate { value.conjugate() } else { value });
            }
            start = end;
            out.end_row()?;
        }
    }
    out.finish()
}

/// Row and value of all entries sorted by column, and where each column ends.
fn by_columns<T: Number>(part: &Part<'_, T>, columns: usize) -> (Vec<usize>, Vec<(usize, T)>) {
    let mut next = vec![0; columns];
    part.columns.iter().for_each(|&column| next[column as usize] += 1);
    let mut start = 0;
    for place in &mut next {
        start += std::mem::replace(place, start);
    }
    let mut entries = vec![(0, T::default()); part.values.len()];
    for row in 0..part.pointers.len() - 1 {
        for (column, value) in part.entries(row) {
            entries[next[column]] = (row, value);
            next[column] += 1;
        }
    }
    (next, entries)
}

/// The same matrix with every number conjugated.
pub(crate) fn conjugated(csr: &Csr) -> Result<Csr> {
    fn of<T: Number>(csr: &Csr) -> Result<Csr> {
        let mut values = csr.tensors()[2].clone();
        values.values_mut::<T>()?.iter_mut().for_each(|value| *value = value.conjugate());
        Ok(csr.with_values(values))
    }
    match csr.dtype() {
        DType::C64 => of::<Complex32>(csr),
        DType::C128 => of::<Complex64>(csr),
        _ => Ok(csr.clone()),
    }
}
