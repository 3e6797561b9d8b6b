//! The Cholesky factor of a positive definite matrix.

use super::{RealScalar, Scalar, subtract_scaled};
use crate::Pool;
use crate::gemm::{Matrix, matmul};

/// Columns factored at a time; the rest of the work is matrix products.
const BLOCK: usize = 48;

/// Overwrites the lower triangle of an `n x n` matrix, of which only that is read, by `l` with `l l' = a`, and the rest
/// by zeros. False if the matrix is not positive definite.
pub fn cholesky<T: Scalar>(pool: &Pool, a: &mut [T], n: usize) -> bool {
    for start in (0..n).step_by(BLOCK) {
        let width = BLOCK.min(n - start);
        let mut panel = panel(pool, a, n, start, width);
        if !factor(&mut panel, n - start, width) {
            return false;
        }
        for (row, values) in a[start * n..].chunks_exact_mut(n).enumerate() {
            for col in 0..width.min(row + 1) {
                values[start + col] = panel[col * (n - start) + row];
            }
        }
    }
    for (row, values) in a.chunks_exact_mut(n.max(1)).enumerate() {
        values[row + 1..].fill(T::default());
    }
    true
}

/// Some columns from their diagonal down, one after the other, less what the columns before them take away.
fn panel<T: Scalar>(pool: &Pool, a: &[T], n: usize, start: usize, width: usize) -> Vec<T> {
    let rows = n - start;
    let mut panel = vec![T::default(); rows * width];
    for (row, values) in a[start * n..].chunks_exact(n).enumerate() {
        for col in 0..width {
            panel[col * rows + row] = values[start + col];
        }
    }
    if start > 0 {
        // Rows of the factor above the panel, conjugated, times all rows below.
        let above: Vec<T> =
            a[start * n..].chunks_exact(n).take(width).flat_map(|row| &row[..start]).map(|v| v.conjugate()).collect();
        let below = Matrix { values: &a[start * n..], rows, cols: start, row_stride: n, col_stride: 1 };
        let mut product = vec![T::default(); rows * width];
        matmul(pool, Matrix::new(&above, width, start), below.transposed(), &mut product);
        super::subtract(&mut panel, &product);
    }
    panel
}

/// Factors a panel of columns, of which the first `width` rows are its triangle.
fn factor<T: Scalar>(panel: &mut [T], rows: usize, width: usize) -> bool {
    for col in 0..width {
        let (done, rest) = panel.split_at_mut(col * rows);
        let column = &mut rest[..rows];
        for before in done.chunks_exact(rows) {
            subtract_scaled(&mut column[col..], before[col].conjugate(), &before[col..]);
        }
        let square = column[col].real();
        let positive = square > T::Real::default() && square.finite();
        if !positive {
            return false;
        }
        let pivot = square.root();
        let inverse = <T::Real as Scalar>::ONE / pivot;
        column[col] = T::from_real(pivot);
        column[col + 1..].iter_mut().for_each(|value| *value = value.scale(inverse));
    }
    true
}
