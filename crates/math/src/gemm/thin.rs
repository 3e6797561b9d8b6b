//! Products with one side so thin that packing the other would cost more than multiplying it.

use super::blocked::ALONE;
use super::kernel::{Finish, ROWS, Tile};
use super::{Matrix, Real, Span};
use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::parallel::split_mut;

/// Rows or columns up to which a side is thin.
const THIN: usize = 2;

/// `out = lhs rhs` if one side is thin and the other lies well for it; whether it was done.
pub(super) fn product<T: Real>(pool: &Pool, lhs: &Matrix<'_, T>, rhs: &Matrix<'_, T>, out: &mut [T]) -> bool {
    let finish = Finish::NONE;
    if rhs.cols <= THIN && lhs.col_stride == 1 {
        let columns = rows_of(&rhs.transposed());
        dots(pool, lhs, &columns, finish, Span::new(out), rhs.cols, 1);
    } else if lhs.rows <= THIN && rhs.row_stride == 1 {
        let rows = rows_of(lhs);
        dots(pool, &rhs.transposed(), &rows, finish, Span::new(out), 1, rhs.cols);
    } else if lhs.rows <= THIN && rhs.col_stride == 1 {
        for (row, out) in out.chunks_exact_mut(rhs.cols).enumerate() {
            let factors: Vec<T> =
                (0..lhs.cols).map(|k| lhs.values[row * lhs.row_stride + k * lhs.col_stride]).collect();
            let cost = rhs.rows as f32 * 0.2;
            split_mut(pool, cost, out, |col, out| vectorize(RowSum { factors: &factors, rhs, col, out }));
        }
    } else {
        return false;
    }
    true
}

/// The numbers of a matrix, row after row.
fn rows_of<T: Real>(matrix: &Matrix<'_, T>) -> Vec<T> {
    let place = |row| move |col| row * matrix.row_stride + col * matrix.col_stride;
    (0..matrix.rows).flat_map(|row| (0..matrix.cols).map(place(row))).map(|at| matrix.values[at]).collect()
}

/// `out[row * out_row + c * out_col] = row of lhs · c-th part of columns`; rows of `lhs` are contiguous.
fn dots<T: Real>(
    pool: &Pool,
    lhs: &Matrix<'_, T>,
    columns: &[T],
    finish: Finish<T>,
    out: Span<T>,
    out_row: usize,
    out_col: usize,
) {
    let alone = lhs.rows.saturating_mul(lhs.cols) < ALONE;
    let strip = if alone { lhs.rows } else { (ALONE / 4 / lhs.cols).max(1) }.next_multiple_of(ROWS);
    pool.run(lhs.rows.div_ceil(strip), &|chunk| {
        let end = ((chunk + 1) * strip).min(lhs.rows);
        for row in (chunk * strip..end).step_by(ROWS) {
            for (col, column) in columns.chunks_exact(lhs.cols).enumerate() {
                let count = ROWS.min(end - row);
                let tile = Tile {
                    rows: std::array::from_fn(|r| lhs.row(row + r.min(count - 1)).as_ptr()),
                    step: 1,
                    segments: &[0],
                    run: lhs.cols,
                    rhs: column.as_ptr(),
                    rhs_step: 1,
                    out: out.at(row * out_row + col * out_col),
                    out_stride: out_row,
                    cols: 1,
                    accumulate: false,
                    finish: finish.after_cols(col),
                };
                // SAFETY: rows and column are whole slices of the depth; rows of `out` are this chunk's.
                unsafe { (T::kernels().dot)(&tile, count) };
            }
        }
    });
}

/// A part of one row of the result, as a sum of rows of the right side.
struct RowSum<'a, T> {
    factors: &'a [T],
    rhs: &'a Matrix<'a, T>,
    col: usize,
    out: &'a mut [T],
}

impl<T: Real> Loop for RowSum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let len = self.out.len();
        let row = |k: usize| &self.rhs.values[k * self.rhs.row_stride + self.col..][..len];
        self.out.fill(T::ZERO);
        let even = self.factors.len() / 4 * 4;
        for k in (0..even).step_by(4) {
            let (f, rows) = (&self.factors[k..k + 4], [row(k), row(k + 1), row(k + 2), row(k + 3)]);
            for (i, out) in self.out.iter_mut().enumerate() {
                *out = *out + f[0] * rows[0][i] + f[1] * rows[1][i] + f[2] * rows[2][i] + f[3] * rows[3][i];
            }
        }
        for k in even..self.factors.len() {
            self.out.iter_mut().zip(row(k)).for_each(|(out, &x)| *out = *out + self.factors[k] * x);
        }
    }
}
