//! Equations with a triangular matrix.

use super::{Scalar, subtract, subtract_scaled};
use crate::Pool;
use crate::gemm::{Matrix, matmul};

/// Rows solved at a time; the rest of the work is matrix products.
const BLOCK: usize = 48;

/// Overwrites `x`, which has `cols` columns, by the solution of `l y = x`. Only the lower triangle of `l` is read, and not
/// its diagonal if it is all ones.
pub fn solve_lower<T: Scalar>(pool: &Pool, l: &[T], n: usize, unit: bool, x: &mut [T], cols: usize) {
    if cols == 0 {
        return;
    }
    let mut product = Vec::new();
    for start in (0..n).step_by(BLOCK) {
        let end = n.min(start + BLOCK);
        let (done, rest) = x.split_at_mut(start * cols);
        let block = &mut rest[..(end - start) * cols];
        let left = Matrix { values: &l[start * n..], rows: end - start, cols: start, row_stride: n, col_stride: 1 };
        take_away(pool, left, done, cols, &mut product, block);
        for row in start..end {
            let (before, rest) = block.split_at_mut((row - start) * cols);
            let values = &mut rest[..cols];
            for (other, solved) in before.chunks_exact(cols).enumerate() {
                subtract_scaled(values, l[row * n + start + other], solved);
            }
            if !unit {
                let pivot = l[row * n + row];
                values.iter_mut().for_each(|value| *value = *value / pivot);
            }
        }
    }
}

/// Overwrites `x`, which has `cols` columns, by the solution of `u y = x`. Only the upper triangle of `u` is read.
pub fn solve_upper<T: Scalar>(pool: &Pool, u: &[T], n: usize, x: &mut [T], cols: usize) {
    if cols == 0 {
        return;
    }
    let mut product = Vec::new();
    for start in (0..n).step_by(BLOCK).rev() {
        let end = n.min(start + BLOCK);
        let (rest, done) = x.split_at_mut(end * cols);
        let block = &mut rest[start * cols..];
        if end < n {
            let right = Matrix {
                values: &u[start * n + end..],
                rows: end - start,
                cols: n - end,
                row_stride: n,
                col_stride: 1,
            };
            take_away(pool, right, done, cols, &mut product, block);
        }
        for row in (start..end).rev() {
            let (rest, after) = block.split_at_mut((row - start + 1) * cols);
            let values = &mut rest[(row - start) * cols..];
            for (other, solved) in after.chunks_exact(cols).enumerate() {
                subtract_scaled(values, u[row * n + row + 1 + other], solved);
            }
            let pivot = u[row * n + row];
            values.iter_mut().for_each(|value| *value = *value / pivot);
        }
    }
}

/// `block -= left solved`.
fn take_away<T: Scalar>(
    pool: &Pool,
    left: Matrix<'_, T>,
    solved: &[T],
    cols: usize,
    product: &mut Vec<T>,
    block: &mut [T],
) {
    if left.cols == 0 {
        return;
    }
    product.resize(block.len(), T::default());
    matmul(pool, left, Matrix::new(solved, left.cols, cols), product);
    subtract(block, product);
}
