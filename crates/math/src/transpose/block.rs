//! Transposes of matrices, block by block: a block's rows and columns fill whole cache lines.

use std::ops::Range;

use super::Permutation;
use crate::Pool;
use crate::cpu::has_avx2_fma;
use crate::elementwise::Element;
use crate::parallel::{Shared, split};

/// The side of a block.
const SIDE: usize = 16;
/// Columns of the source worked on together: few enough pages for the processor to keep track of.
const STRIP: usize = 64;
/// Rows of the source in one piece of work.
const PIECE: usize = 4096;

/// A matrix inside the source, and where its transpose goes.
#[derive(Clone, Copy)]
struct Matrix {
    /// Rows of the source, which become columns.
    rows: usize,
    /// Columns of the source, next to each other, which become rows.
    columns: usize,
    /// From one row of the source to the next.
    stride: usize,
    /// From one row of the result to the next.
    out_stride: usize,
}

/// Transposes all matrices made of the source's innermost axis and the result's.
pub(super) fn transpose_matrices<T: Element>(
    pool: &Pool,
    cost: f32,
    permutation: &Permutation,
    src: &[T],
    dst: &mut [T],
) {
    let (dims, strides, out_strides) = (permutation.dims(), permutation.strides(), permutation.out_strides());
    let last = dims.len() - 1;
    let Some(inner) = strides.iter().position(|stride| *stride == 1) else { unreachable!("no axis of stride one") };
    let matrix =
        Matrix { rows: dims[last], columns: dims[inner], stride: strides[last], out_stride: out_strides[inner] };
    let others: Vec<[usize; 3]> =
        (0..last).filter(|axis| *axis != inner).map(|axis| [dims[axis], strides[axis], out_strides[axis]]).collect();
    let count: usize = others.iter().map(|axis| axis[0]).product();
    // Whole blocks, so that no two threads write one cache line.
    let (strips, pieces) = (matrix.columns.div_ceil(STRIP), matrix.rows.div_ceil(PIECE));
    let shared = Shared::new(dst);
    let item_cost = cost * (matrix.rows.min(PIECE) * matrix.columns.min(STRIP)) as f32;
    split(pool, count * strips * pieces, item_cost, 1, |range| {
        for item in range {
            let (from, to) = offsets(&others, item / (strips * pieces));
            let (strip, piece) = (item / pieces % strips * STRIP, item % pieces * PIECE);
            let columns = strip..matrix.columns.min(strip + STRIP);
            let rows = piece..matrix.rows.min(piece + PIECE);
            transpose_part(&matrix, &src[from..], &shared, to, rows, columns);
        }
    });
}

fn offsets(axes: &[[usize; 3]], mut index: usize) -> (usize, usize) {
    let (mut from, mut to) = (0, 0);
    for &[dim, stride, out_stride] in axes.iter().rev() {
        from += index % dim * stride;
        to += index % dim * out_stride;
        index /= dim;
    }
    (from, to)
}

/// Transposes some rows and columns; the result's first row begins at `to`.
fn transpose_part<T: Element>(
    matrix: &Matrix,
    src: &[T],
    dst: &Shared<T>,
    to: usize,
    rows: Range<usize>,
    columns: Range<usize>,
) {
    let whole_rows = rows.start + rows.len() / SIDE * SIDE;
    let whole_columns = columns.start + columns.len() / SIDE * SIDE;
    for band in (rows.start..whole_rows).step_by(STRIP) {
        for column in (columns.start..whole_columns).step_by(SIDE) {
            for row in (band..whole_rows.min(band + STRIP)).step_by(SIDE) {
                move_block(matrix, src, dst, to, row, column);
            }
        }
    }
    move_edge(matrix, src, dst, to, rows.start..whole_rows, whole_columns..columns.end);
    move_edge(matrix, src, dst, to, whole_rows..rows.end, columns);
}

#[inline(always)]
fn move_block<T: Element>(matrix: &Matrix, src: &[T], dst: &Shared<T>, to: usize, row: usize, column: usize) {
    let mut block = [src[0]; SIDE * SIDE];
    transpose_block(&src[row * matrix.stride + column..], matrix.stride, &mut block);
    for (i, line) in block.chunks_exact(SIDE).enumerate() {
        let at = to + (column + i) * matrix.out_stride + row;
        // SAFETY: every element of the result belongs to one part, and every part is worked on once.
        unsafe { dst.range(at..at + SIDE) }.copy_from_slice(line);
    }
}

/// What is left beside whole blocks, element by element; the shorter side is the inner loop.
fn move_edge<T: Element>(
    matrix: &Matrix,
    src: &[T],
    dst: &Shared<T>,
    to: usize,
    rows: Range<usize>,
    columns: Range<usize>,
) {
    let move_one = |row: usize, column: usize| {
        let at = to + column * matrix.out_stride + row;
        // SAFETY: as in `move_block`.
        let out = unsafe { dst.range(at..at + 1) };
        out[0] = src[row * matrix.stride + column];
    };
    if columns.len() < rows.len() {
        rows.for_each(|row| columns.clone().for_each(|column| move_one(row, column)));
    } else {
        columns.for_each(|column| rows.clone().for_each(|row| move_one(row, column)));
    }
}

/// Transposes the square of `SIDE` at the start of `src` into `block`.
#[inline(always)]
fn transpose_block<T: Element>(src: &[T], stride: usize, block: &mut [T; SIDE * SIDE]) {
    assert!(src.len() >= (SIDE - 1) * stride + SIDE, "transpose: block of {} elements", src.len());
    #[cfg(target_arch = "x86_64")]
    if size_of::<T>() == 4 && has_avx2_fma() {
        let (src, dst) = (src.as_ptr().cast::<f32>(), block.as_mut_ptr().cast::<f32>());
        // SAFETY: AVX2 is present, elements have four bytes, and the square lies inside both, all checked above.
        return unsafe { avx2::transpose_16x16(src, stride, dst) };
    }
    transpose_block_plain(src, stride, block);
}

#[inline(always)]
fn transpose_block_plain<T: Copy>(src: &[T], stride: usize, block: &mut [T; SIDE * SIDE]) {
    for row in 0..SIDE {
        let line = &src[row * stride..][..SIDE];
        for column in 0..SIDE {
            block[column * SIDE + row] = line[column];
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    /// Transposes 16 rows of 16 four-byte elements, `stride` apart, into 16 rows next to each other.
    ///
    /// # Safety
    /// AVX2 is present; the square can be read from `src` and 256 elements written to `dst`.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn transpose_16x16(src: *const f32, stride: usize, dst: *mut f32) {
        for row in [0, 8] {
            for column in [0, 8] {
                // SAFETY: both corners lie inside the squares the caller promises.
                unsafe { transpose_8x8(src.add(row * stride + column), stride, dst.add(column * 16 + row)) };
            }
        }
    }

    /// # Safety
    /// AVX2 is present; the square can be read from `src`, and written to `dst` with rows 16 apart.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn transpose_8x8(src: *const f32, stride: usize, dst: *mut f32) {
        // SAFETY: the caller promises that all eight rows can be read.
        let row = |i: usize| unsafe { _mm256_loadu_ps(src.add(i * stride)) };
        let half = |i: usize| {
            let (a, b, c, d) = (row(i), row(i + 1), row(i + 2), row(i + 3));
            let (ab_low, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            let (cd_low, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
            [
                _mm256_shuffle_ps::<0x44>(ab_low, cd_low),
                _mm256_shuffle_ps::<0xee>(ab_low, cd_low),
                _mm256_shuffle_ps::<0x44>(ab_high, cd_high),
                _mm256_shuffle_ps::<0xee>(ab_high, cd_high),
            ]
        };
        let (top, bottom) = (half(0), half(4));
        for i in 0..4 {
            // SAFETY: the caller promises that all eight rows can be written.
            unsafe {
                _mm256_storeu_ps(dst.add(i * 16), _mm256_permute2f128_ps::<0x20>(top[i], bottom[i]));
                _mm256_storeu_ps(dst.add((i + 4) * 16), _mm256_permute2f128_ps::<0x31>(top[i], bottom[i]));
            }
        }
    }
}
