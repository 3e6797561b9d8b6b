//! Copies blocks of a matrix into the order in which the micro-kernels read them.

use super::kernel::ROWS;
use super::{Matrix, Real};
use std::ops::Range;

/// How a packed block of left rows is read.
#[derive(Clone, Copy)]
pub(crate) struct Strips {
    /// From one row of a strip to the next.
    pub row: usize,
    /// From one factor of a row to the next.
    pub step: usize,
    /// From one strip to the next.
    pub strip: usize,
}

/// Numbers that a packed block of `rows` left rows takes.
pub(crate) fn lhs_len(rows: usize, depth: usize) -> usize {
    rows.div_ceil(ROWS) * ROWS * depth
}

/// Numbers that a packed block of `cols` right columns takes.
pub(crate) fn rhs_len<T: Real>(cols: usize, depth: usize) -> usize {
    cols.div_ceil(T::PANEL) * T::PANEL * depth
}

/// Packs `lhs[rows, depth]`. Rows that are contiguous stay so, others are interleaved by strips of `ROWS`.
pub(crate) fn lhs<T: Real>(lhs: &Matrix<'_, T>, rows: Range<usize>, depth: Range<usize>, dst: &mut [T]) -> Strips {
    let len = depth.len();
    if lhs.col_stride == 1 {
        for (row, dst) in rows.zip(dst.chunks_exact_mut(len)) {
            let start = row * lhs.row_stride + depth.start;
            dst.copy_from_slice(&lhs.values[start..start + len]);
        }
        return Strips { row: len, step: 1, strip: ROWS * len };
    }
    for (first, dst) in rows.clone().step_by(ROWS).zip(dst.chunks_exact_mut(ROWS * len)) {
        let count = ROWS.min(rows.end - first);
        for (k, dst) in depth.clone().zip(dst.chunks_exact_mut(ROWS)) {
            let start = first * lhs.row_stride + k * lhs.col_stride;
            if count == ROWS && lhs.row_stride == 1 {
                dst.copy_from_slice(&lhs.values[start..start + ROWS]);
            } else {
                for (r, dst) in dst.iter_mut().enumerate() {
                    *dst = if r < count { lhs.values[start + r * lhs.row_stride] } else { T::ZERO };
                }
            }
        }
    }
    Strips { row: 1, step: ROWS, strip: ROWS * len }
}

/// Left rows that are contiguous, from one place on, without a copy.
pub(crate) fn lhs_in_place<'a, T: Real>(lhs: &Matrix<'a, T>, row: usize, depth: usize) -> (&'a [T], Strips) {
    let strips = Strips { row: lhs.row_stride, step: 1, strip: ROWS * lhs.row_stride };
    (&lhs.values[row * lhs.row_stride + depth..], strips)
}

/// Packs `rhs[depth, cols]` as panels of `T::PANEL` columns, zeros beyond the last.
pub(crate) fn rhs<T: Real>(rhs: &Matrix<'_, T>, depth: Range<usize>, cols: Range<usize>, dst: &mut [T]) {
    let stride = depth.len() * T::PANEL;
    rhs_strided(rhs, depth, cols, stride, dst);
}

/// As `rhs`, with the panels `stride` numbers apart, so that several calls can fill one deep panel.
pub(crate) fn rhs_strided<T: Real>(
    rhs: &Matrix<'_, T>,
    depth: Range<usize>,
    cols: Range<usize>,
    stride: usize,
    dst: &mut [T],
) {
    if depth.is_empty() {
        return;
    }
    let len = depth.len() * T::PANEL;
    let mut panel = 0;
    if rhs.col_stride == 1 {
        // Several panels at once, since rows are read fastest along; not all, since their lines would collide.
        while cols.len() >= (panel + TOGETHER) * T::PANEL {
            let first = cols.start + panel * T::PANEL;
            let dst = &mut dst[panel * stride..][..(TOGETHER - 1) * stride + len];
            rhs_rows::<T, TOGETHER>(rhs, depth.clone(), first, stride, dst);
            panel += TOGETHER;
        }
    }
    for first in (cols.start + panel * T::PANEL..cols.end).step_by(T::PANEL) {
        let part = first..(first + T::PANEL).min(cols.end);
        let dst = &mut dst[panel * stride..][..len];
        if part.len() < T::PANEL {
            rhs_any(rhs, depth.clone(), part, dst);
        } else if rhs.col_stride == 1 {
            rhs_rows::<T, 1>(rhs, depth.clone(), first, stride, dst);
        } else if rhs.row_stride == 1 {
            rhs_transposed(rhs, depth.clone(), part, dst);
        } else {
            rhs_any(rhs, depth.clone(), part, dst);
        }
        panel += 1;
    }
}

/// Panels that are packed at once.
const TOGETHER: usize = 2;

/// `N` whole panels of a matrix whose rows are contiguous.
fn rhs_rows<T: Real, const N: usize>(
    rhs: &Matrix<'_, T>,
    depth: Range<usize>,
    col: usize,
    stride: usize,
    dst: &mut [T],
) {
    for (i, k) in depth.enumerate() {
        let start = k * rhs.row_stride + col;
        let row = &rhs.values[start..start + N * T::PANEL];
        // Rows far apart are in pages of their own, where no prefetcher of the processor looks ahead.
        for line in (0..N * T::PANEL).step_by(64 / size_of::<T>()) {
            prefetch(rhs.values.as_ptr().wrapping_add(start + 8 * rhs.row_stride + line));
        }
        for panel in 0..N {
            let at = panel * stride + i * T::PANEL;
            dst[at..at + T::PANEL].copy_from_slice(&row[panel * T::PANEL..(panel + 1) * T::PANEL]);
        }
    }
}

/// Asks for the cache line at an address, which need not be valid.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// A whole panel of a matrix whose columns are contiguous: transposes square blocks in registers.
fn rhs_transposed<T: Real>(rhs: &Matrix<'_, T>, depth: Range<usize>, cols: Range<usize>, dst: &mut [T]) {
    let block = T::SQUARE;
    let even = depth.len() / block * block;
    assert!((cols.end - 1) * rhs.col_stride + depth.end <= rhs.values.len(), "right side of a product is too short");
    assert_eq!(dst.len(), depth.len() * T::PANEL, "a panel of the right side has the wrong size");
    for k in (0..even).step_by(block) {
        for col in (0..T::PANEL).step_by(block) {
            let src = (cols.start + col) * rhs.col_stride + depth.start + k;
            // SAFETY: the columns up to `cols.end` hold `depth`, `dst` is one panel; both asserted above.
            unsafe {
                let dst = dst.as_mut_ptr().add(k * T::PANEL + col);
                (T::kernels().transpose)(rhs.values.as_ptr().add(src), rhs.col_stride, dst, T::PANEL);
            }
        }
    }
    rhs_any(rhs, depth.start + even..depth.end, cols, &mut dst[even * T::PANEL..]);
}

/// One panel, number by number.
fn rhs_any<T: Real>(rhs: &Matrix<'_, T>, depth: Range<usize>, cols: Range<usize>, dst: &mut [T]) {
    for (k, dst) in depth.zip(dst.chunks_exact_mut(T::PANEL)) {
        let start = k * rhs.row_stride + cols.start * rhs.col_stride;
        let (dst, beyond) = dst.split_at_mut(cols.len());
        match rhs.col_stride {
            1 => dst.copy_from_slice(&rhs.values[start..start + cols.len()]),
            stride => dst.iter_mut().enumerate().for_each(|(c, dst)| *dst = rhs.values[start + c * stride]),
        }
        beyond.fill(T::ZERO);
    }
}
