//! SparseMatrixSparseCholesky: the lower factor of a symmetric matrix whose rows are permuted first.

use super::for_fields;
use super::matrix::{Builder, Csr, Number, Part};
use math::linalg::RealScalar;
use op::shapes::scalar;
use op::{Grad, Kernel, Op, PLAIN, Setup, binary};
use status::{Result, invalid};
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseMatrixSparseCholesky(input: variant, permutation: int32) -> output: variant; \
          type: {float, double, complex64, complex128}",
    shape: scalar,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("type")?;
    for_fields!(setup, dtype, T => Ok(binary(move |_, input, permutation| {
        let csr = Csr::take(&input, 0)?;
        check(&csr, &permutation, dtype)?;
        run::<T>(&csr, permutation.values::<i32>()?)?.into_tensor()
    }).heavy()))
}

fn check(csr: &Csr, permutation: &Tensor, dtype: DType) -> Result<()> {
    if csr.dtype() != dtype {
        return Err(invalid!("Asked for a CSRSparseMatrix of type {dtype} but saw dtype: {}", csr.dtype()));
    }
    if csr.rows != csr.columns {
        return Err(invalid!("sparse matrix must be square; got: {} != {}", csr.rows, csr.columns));
    }
    let shape = permutation.shape();
    if shape.rank() + 1 != csr.rank() {
        return Err(invalid!(
            "sparse matrix must have the same rank as permutation; got: {} != {} + 1.",
            csr.rank(),
            shape.rank()
        ));
    }
    if shape[shape.rank() - 1] != csr.rows {
        return Err(invalid!(
            "permutation must have the same number of elements in each batch as the number of rows in sparse matrix; \
             got: {} != {}",
            shape[shape.rank() - 1],
            csr.rows
        ));
    }
    if csr.rank() == 3 && shape[0] != csr.batches {
        return Err(invalid!(
            "permutation must have the same batch size as sparse matrix; got: {} != {}",
            shape[0],
            csr.batches
        ));
    }
    Ok(())
}

fn run<T: Number>(csr: &Csr, permutations: &[i32]) -> Result<Csr> {
    let mut out = Builder::<T>::new(csr.dense_shape().values::<i64>()?)?;
    for batch in 0..csr.batches {
        let places = inverse(&permutations[batch * csr.rows..][..csr.rows])?;
        let rows = permuted(&csr.part::<T>(batch)?, &places);
        let factor = Factor::of(rows).ok_or_else(|| {
            invalid!("Sparse Cholesky factorization failed for batch index {batch}. The input might not be valid.")
        })?;
        for row in factor {
            row.into_iter().for_each(|(column, value)| out.push(column, value));
            out.end_row()?;
        }
    }
    out.finish()
}

/// Where each row goes.
fn inverse(permutation: &[i32]) -> Result<Vec<usize>> {
    let mut places = vec![usize::MAX; permutation.len()];
    for (place, &row) in permutation.iter().enumerate() {
        let slot = usize::try_from(row).ok().and_then(|row| places.get_mut(row));
        match slot {
            Some(slot) if *slot == usize::MAX => *slot = place,
            _ => return Err(invalid!("permutation is not a permutation: it has the element {row}")),
        }
    }
    Ok(places)
}

/// Entries of a row: column and value.
type Entries<T> = Vec<(usize, T)>;

/// The lower triangle of the permuted matrix, of which only the lower triangle is read.
fn permuted<T: Number>(part: &Part<'_, T>, places: &[usize]) -> Vec<Entries<T>> {
    let mut rows = vec![Vec::new(); places.len()];
    for (row, &to) in places.iter().enumerate() {
        for (column, value) in part.entries(row).filter(|&(column, _)| column <= row) {
            match places[column] {
                at if at <= to => rows[to].push((at, value)),
                at => rows[at].push((to, value.conjugate())),
            }
        }
    }
    rows
}

/// A factor under construction, row by row.
struct Factor<T> {
    /// The first row below each column in which the factor has an entry.
    parents: Vec<Option<usize>>,
    /// The entries below the diagonal of each column: row and value.
    columns: Vec<Entries<T>>,
    diagonal: Vec<T>,
    /// The last row that came by each column.
    marks: Vec<usize>,
}

impl<T: Number> Factor<T> {
    /// The rows of the factor; none if the matrix is not positive definite.
    fn of(rows: Vec<Entries<T>>) -> Option<Vec<Entries<T>>> {
        let n = rows.len();
        let mut factor = Factor {
            parents: vec![None; n],
            columns: vec![Vec::new(); n],
            diagonal: Vec::with_capacity(n),
            marks: vec![usize::MAX; n],
        };
        let mut dense = vec![T::default(); n];
        rows.into_iter().enumerate().map(|(row, entries)| factor.row(row, &entries, &mut dense)).collect()
    }

    /// The columns of a row of the factor: from its entries upwards in the tree of eliminations.
    fn pattern(&mut self, row: usize, entries: &Entries<T>) -> Vec<usize> {
        let mut pattern = Vec::new();
        self.marks[row] = row;
        for &(column, _) in entries {
            let mut next = column;
            while self.marks[next] != row {
                self.marks[next] = row;
                pattern.push(next);
                next = *self.parents[next].get_or_insert(row);
            }
        }
        pattern.sort_unstable();
        pattern
    }

    /// Solves for a row with the rows above it; `dense` is zero before and after.
    fn row(&mut self, row: usize, entries: &Entries<T>, dense: &mut [T]) -> Option<Entries<T>> {
        let pattern = self.pattern(row, entries);
        entries.iter().for_each(|&(column, value)| dense[column] = dense[column] + value);
        let mut square = std::mem::take(&mut dense[row]).real();
        let mut out = Vec::with_capacity(pattern.len() + 1);
        for column in pattern {
            let value = std::mem::take(&mut dense[column]) / self.diagonal[column];
            for &(below, factor) in &self.columns[column] {
                dense[below] = dense[below] - value * factor.conjugate();
            }
            square = square - value.modulus_squared();
            self.columns[column].push((row, value));
            out.push((column, value));
        }
        if square <= T::Real::default() {
            return None;
        }
        let diagonal = T::from_real(square.root());
        self.diagonal.push(diagonal);
        out.push((row, diagonal));
        Some(out)
    }
}
