//! Large products as blocks that fit the caches, split over the pool.

use super::kernel::{Finish, ROWS, Tile};
use super::pack::{self, Strips};
use super::{Matrix, Real, Span, scratch};
use crate::Pool;
use std::ops::Range;

/// Products below this many multiplications are not worth waking a thread for.
pub(super) const ALONE: usize = 1 << 20;

/// `out = lhs rhs`, finished by `finish`; sizes were checked.
pub(crate) fn product<T: Real>(
    pool: &Pool,
    lhs: &Matrix<'_, T>,
    rhs: &Matrix<'_, T>,
    finish: Finish<T>,
    out: Span<T>,
    out_stride: usize,
) {
    let work = lhs.rows.saturating_mul(lhs.cols).saturating_mul(rhs.cols);
    let threads = if work < ALONE { 1 } else { pool.threads() };
    let (height, width) = block_size::<T>(lhs.rows, rhs.cols, threads);
    let across = rhs.cols.div_ceil(width);
    pool.run(lhs.rows.div_ceil(height) * across, &|chunk| {
        let (row, col) = (chunk / across * height, chunk % across * width);
        let rows = row..(row + height).min(lhs.rows);
        let cols = col..(col + width).min(rhs.cols);
        block(lhs, rhs, rows, cols, finish, out, out_stride);
    });
}

/// Height and width of the blocks of the result that are handed to threads.
///
/// Blocks are as large as leaves several for each thread, since a block packs its rows and its columns
/// by itself; a low result is split by columns, a narrow one by rows.
fn block_size<T: Real>(rows: usize, cols: usize, threads: usize) -> (usize, usize) {
    let (most_rows, most_cols) = (64 * ROWS, 16 * T::PANEL);
    let chunks = if threads == 1 { 1 } else { 4 * threads };
    let mut height = most_rows.min(rows.next_multiple_of(ROWS));
    let mut width = most_cols.min(cols.next_multiple_of(T::PANEL));
    while rows.div_ceil(height) * cols.div_ceil(width) < chunks {
        if width >= height && width > T::PANEL {
            width = (width / 2).next_multiple_of(T::PANEL);
        } else if height > 2 * ROWS {
            height = (height / 2).next_multiple_of(ROWS);
        } else {
            break;
        }
    }
    (height, width)
}

/// One block of the result, over the whole depth.
fn block<T: Real>(
    lhs: &Matrix<'_, T>,
    rhs: &Matrix<'_, T>,
    rows: Range<usize>,
    cols: Range<usize>,
    finish: Finish<T>,
    out: Span<T>,
    out_stride: usize,
) {
    let deepest = T::DEPTH;
    let pieces = lhs.cols.div_ceil(deepest);
    let deep = lhs.cols.div_ceil(pieces);
    let in_place = lies_well(lhs, cols.len());
    let lhs_len = if in_place { 0 } else { pack::lhs_len(rows.len(), deep) };
    let rhs_len = pack::rhs_len::<T>(cols.len(), deep);
    scratch::with::<T, _>(rhs_len + lhs_len, |packed| {
        // The right side first, at the beginning of a cache line: its rows are read as whole registers.
        let (right, left) = packed.split_at_mut(rhs_len);
        for start in (0..lhs.cols).step_by(deep) {
            let depth = start..(start + deep).min(lhs.cols);
            let (left, strips) = match in_place {
                true => pack::lhs_in_place(lhs, rows.start, depth.start),
                false => {
                    let strips = pack::lhs(lhs, rows.clone(), depth.clone(), left);
                    (&*left, strips)
                }
            };
            pack::rhs(rhs, depth.clone(), cols.clone(), right);
            let last = depth.end == lhs.cols;
            let packed = Packed { left, strips, right, depth: depth.len() };
            let finish = if last { finish.after_cols(cols.start) } else { Finish::NONE };
            let target =
                Target { out: out.from(rows.start * out_stride + cols.start), out_stride, accumulate: start > 0 };
            packed.multiply(rows.len(), cols.len(), finish, target);
        }
    });
}

/// Whether the left side is best read where it lies: its rows are contiguous, and either do not all begin in the same
/// places of the first cache, or are read too few times for a copy to pay.
fn lies_well<T: Real>(lhs: &Matrix<'_, T>, cols: usize) -> bool {
    const CACHE_WAY: usize = 4096;
    let collides = (lhs.row_stride * size_of::<T>()).is_multiple_of(CACHE_WAY);
    lhs.col_stride == 1 && (!collides || cols <= 4 * T::PANEL)
}

/// A packed block of each side.
struct Packed<'a, T> {
    left: &'a [T],
    strips: Strips,
    right: &'a [T],
    depth: usize,
}

/// Where a block goes.
struct Target<T> {
    out: Span<T>,
    out_stride: usize,
    accumulate: bool,
}

impl<T: Real> Packed<'_, T> {
    fn multiply(&self, rows: usize, cols: usize, finish: Finish<T>, target: Target<T>) {
        let kernels = T::kernels();
        for (panel, col) in (0..cols).step_by(T::PANEL).enumerate() {
            let right = &self.right[panel * T::PANEL * self.depth..][..T::PANEL * self.depth];
            for (strip, row) in (0..rows).step_by(ROWS).enumerate() {
                let left = &self.left[strip * self.strips.strip..];
                let tile = Tile {
                    rows: std::array::from_fn(|r| left.as_ptr().wrapping_add(r * self.strips.row)),
                    step: self.strips.step,
                    segments: &[0],
                    run: self.depth,
                    rhs: right.as_ptr(),
                    rhs_step: T::PANEL,
                    out: target.out.at(row * target.out_stride + col),
                    out_stride: target.out_stride,
                    cols: T::PANEL.min(cols - col),
                    accumulate: target.accumulate,
                    finish: finish.after_cols(col),
                };
                // SAFETY: both packed blocks hold `depth` for these rows and columns; the tile of `out` is
                // inside the block, which only this call writes.
                unsafe { kernels.run(ROWS.min(rows - row), &tile) };
            }
        }
    }
}
