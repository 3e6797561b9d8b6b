//! The LU factors of a square matrix with row exchanges.

use super::{Scalar, solve_lower, solve_upper, subtract, subtract_scaled, swap_rows};
use crate::Pool;
use crate::gemm::{Matrix, matmul};

/// Columns factored at a time; the rest of the work is matrix products.
const BLOCK: usize = 48;
/// Rows of a product that are held at once.
const ROWS: usize = 256;

/// `p a = l u`: both triangles in one matrix, the diagonal of `l` being all ones.
#[derive(Clone, Debug)]
pub struct Lu<T> {
    /// The triangles.
    pub factors: Vec<T>,
    /// Row `i` of `p a` is row `rows[i]` of `a`.
    pub rows: Vec<usize>,
    /// Whether an odd number of rows were exchanged.
    pub odd: bool,
    /// How many rows.
    pub size: usize,
}

/// Factors an `n x n` matrix.
pub fn lu<T: Scalar>(pool: &Pool, matrix: &[T], n: usize) -> Lu<T> {
    let mut lu = Lu { factors: matrix.to_vec(), rows: (0..n).collect(), odd: false, size: n };
    for start in (0..n).step_by(BLOCK) {
        let width = BLOCK.min(n - start);
        lu.factor_panel(start, width);
        lu.update(pool, start, width);
    }
    lu
}

impl<T: Scalar> Lu<T> {
    /// Factors columns `start .. start + width` from row `start` down, exchanging whole rows.
    fn factor_panel(&mut self, start: usize, width: usize) {
        let (n, rows) = (self.size, self.size - start);
        let mut panel = vec![T::default(); rows * width];
        for (row, values) in self.factors[start * n..].chunks_exact(n).enumerate() {
            (0..width).for_each(|col| panel[col * rows + row] = values[start + col]);
        }
        for col in 0..width {
            let pivot = largest(&panel[col * rows..][..rows], col);
            if pivot != col {
                panel.chunks_exact_mut(rows).for_each(|column| column.swap(col, pivot));
                swap_rows(&mut self.factors, n, start + col, start + pivot);
                self.rows.swap(start + col, start + pivot);
                self.odd = !self.odd;
            }
            eliminate(&mut panel, rows, col);
        }
        for (row, values) in self.factors[start * n..].chunks_exact_mut(n).enumerate() {
            (0..width).for_each(|col| values[start + col] = panel[col * rows + row]);
        }
    }

    /// Brings what is right of and below a factored panel up to date.
    fn update(&mut self, pool: &Pool, start: usize, width: usize) {
        let (n, end) = (self.size, start + width);
        if end == n {
            return;
        }
        let (top, below) = self.factors.split_at_mut(end * n);
        let top = &mut top[start * n..];
        for row in 1..width {
            let (done, rest) = top.split_at_mut(row * n);
            let (left, right) = rest[..n].split_at_mut(end);
            for (before, values) in done.chunks_exact(n).enumerate() {
                subtract_scaled(right, left[start + before], &values[end..]);
            }
        }
        let upper = Matrix { values: &top[end..], rows: width, cols: n - end, row_stride: n, col_stride: 1 };
        let mut product = vec![T::default(); ROWS.min(n - end) * (n - end)];
        for block in below.chunks_mut(ROWS * n) {
            let rows = block.len() / n;
            let lower = Matrix { values: &block[start..], rows, cols: width, row_stride: n, col_stride: 1 };
            let product = &mut product[..rows * (n - end)];
            matmul(pool, lower, upper, product);
            for (row, product) in block.chunks_exact_mut(n).zip(product.chunks_exact(n - end)) {
                subtract(&mut row[end..], product);
            }
        }
    }

    /// The diagonal of `u`.
    pub fn diagonal(&self) -> impl Iterator<Item = T> + '_ {
        self.factors.iter().step_by(self.size + 1).copied()
    }

    /// Whether no pivot is zero.
    pub fn invertible(&self) -> bool {
        self.diagonal().all(|pivot| pivot.modulus_squared() > T::Real::default())
    }

    /// The `x` with `a x = b`, where `b` has `cols` columns.
    pub fn solve(&self, pool: &Pool, b: &[T], cols: usize) -> Vec<T> {
        let mut x: Vec<T> = self.rows.iter().flat_map(|&row| &b[row * cols..][..cols]).copied().collect();
        solve_lower(pool, &self.factors, self.size, true, &mut x, cols);
        solve_upper(pool, &self.factors, self.size, &mut x, cols);
        x
    }
}

/// The row of the number farthest from zero, from `first` on.
fn largest<T: Scalar>(column: &[T], first: usize) -> usize {
    let mut best = first;
    for row in first + 1..column.len() {
        if column[row].modulus_squared() > column[best].modulus_squared() {
            best = row;
        }
    }
    best
}

/// Divides a column by its pivot and takes it away from those after it.
fn eliminate<T: Scalar>(panel: &mut [T], rows: usize, col: usize) {
    let (done, rest) = panel.split_at_mut((col + 1) * rows);
    let column = &mut done[col * rows..];
    let pivot = column[col];
    if pivot != T::default() {
        column[col + 1..].iter_mut().for_each(|value| *value = *value / pivot);
    }
    for other in rest.chunks_exact_mut(rows) {
        let factor = other[col];
        subtract_scaled(&mut other[col + 1..], factor, &column[col + 1..]);
    }
}
