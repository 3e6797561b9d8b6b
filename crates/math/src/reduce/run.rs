//! The loops of a reduction.
//!
//! Long sums are cut in halves again and again, so that rounding errors grow with the logarithm of the length; where the
//! cuts are depends on sizes only, so the number of threads does not change a result.

use std::hint::black_box;
use std::ops::Range;

use super::{Fold, Reduction};
use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::elementwise::Element;
use crate::parallel::{split, split_mut, split_rows_mut};

/// Elements folded side by side: four vectors of eight.
const LANES: usize = 32;
/// Elements folded without a cut.
const BLOCK: usize = 2048;
/// Rows folded without a cut.
const ROWS: usize = 128;
/// Columns whose states stay in the first cache.
const COLUMNS: usize = 2048;
/// Into how many parts a reduction with few results is cut.
const PARTS: usize = 64;

/// Writes the results of folding `src` along the reduced axes; `cost` is nanoseconds for an element.
pub fn reduce_axes<T: Element, F: Fold<T>>(pool: &Pool, cost: f32, shape: &Reduction, src: &[T], dst: &mut [T], _: F) {
    assert_eq!(src.len(), shape.in_len(), "reduce: length of the input");
    assert_eq!(dst.len(), shape.out_len(), "reduce: length of the output");
    if src.is_empty() {
        return dst.fill(F::finish(F::START, 0));
    }
    match shape.inner_is_reduced() {
        true => reduce_rows::<T, F>(pool, cost, shape, src, dst),
        false => reduce_columns::<T, F>(pool, cost, shape, src, dst),
    }
}

fn reduce_rows<T: Element, F: Fold<T>>(pool: &Pool, cost: f32, shape: &Reduction, src: &[T], dst: &mut [T]) {
    let count = shape.count();
    if dst.len() >= 2 * pool.threads() || count < BLOCK * PARTS {
        return split_rows_mut(pool, cost * count as f32, dst, 1, |first, dst| {
            vectorize(Rows::<T, F> { shape, src, first, dst, fold: F::START })
        });
    }
    // Few results of many elements: every result is folded in parts.
    let pieces = shape.inner().div_ceil(BLOCK * 8);
    let items = shape.rows() * pieces;
    for (outer, dst) in dst.iter_mut().enumerate() {
        let src = &src[shape.outer_offset(outer)..];
        let mut states = [F::START; PARTS];
        split_mut_states(pool, cost * count as f32 / PARTS as f32, &mut states, |part, state| {
            let range = items * part / PARTS..items * (part + 1) / PARTS;
            *state = vectorize(Pieces::<T, F> { shape, src, range, pieces, fold: F::START });
        });
        *dst = F::finish(states.into_iter().fold(F::START, F::merge), count);
    }
}

fn split_mut_states<S: Send>(pool: &Pool, cost: f32, states: &mut [S], body: impl Fn(usize, &mut S) + Sync) {
    split_rows_mut(pool, cost, states, 1, |first, states| {
        for (i, state) in states.iter_mut().enumerate() {
            body(first + i, state);
        }
    });
}

fn reduce_columns<T: Element, F: Fold<T>>(pool: &Pool, cost: f32, shape: &Reduction, src: &[T], dst: &mut [T]) {
    let (width, rows) = (shape.inner(), shape.rows());
    let row_cost = cost * rows as f32 * width as f32;
    if shape.outer() >= 2 * pool.threads() {
        return split_rows_mut(pool, row_cost, dst, width, |first, dst| {
            let mut states = vec![F::START; width.min(COLUMNS)];
            for (i, dst) in dst.chunks_exact_mut(width).enumerate() {
                columns_of_outer::<T, F>(shape, &src[shape.outer_offset(first + i)..], 0, dst, &mut states);
            }
        });
    }
    for (outer, dst) in dst.chunks_exact_mut(width).enumerate() {
        let src = &src[shape.outer_offset(outer)..];
        if rows >= 2 * PARTS && width <= COLUMNS * 8 {
            columns_in_parts::<T, F>(pool, cost, shape, src, dst);
        } else {
            split_mut(pool, cost * rows as f32, dst, |start, dst| {
                let mut states = vec![F::START; dst.len().min(COLUMNS)];
                columns_of_outer::<T, F>(shape, src, start, dst, &mut states);
            });
        }
    }
}

/// Folds all rows, tile of columns by tile; `dst` begins at column `start`.
fn columns_of_outer<T: Element, F: Fold<T>>(
    shape: &Reduction,
    src: &[T],
    start: usize,
    dst: &mut [T],
    states: &mut [F::State],
) {
    for (tile, dst) in dst.chunks_mut(states.len().max(1)).enumerate() {
        let first = start + tile * states.len();
        let states = &mut states[..dst.len()];
        states.fill(F::START);
        vectorize(Columns::<T, F> { shape, src, first, rows: 0..shape.rows(), states });
        for (dst, state) in dst.iter_mut().zip(states) {
            *dst = F::finish(*state, shape.rows());
        }
    }
}

/// Folds groups of rows side by side, then joins them.
fn columns_in_parts<T: Element, F: Fold<T>>(pool: &Pool, cost: f32, shape: &Reduction, src: &[T], dst: &mut [T]) {
    let (width, rows) = (shape.inner(), shape.rows());
    let parts = PARTS.min(rows / ROWS + 1);
    let mut states = vec![F::START; parts * width];
    split_rows_mut(pool, cost * (rows * width) as f32 / parts as f32, &mut states, width, |first, states| {
        for (i, states) in states.chunks_exact_mut(width).enumerate() {
            let part = first + i;
            let rows = rows * part / parts..rows * (part + 1) / parts;
            for (tile, states) in states.chunks_mut(COLUMNS).enumerate() {
                vectorize(Columns::<T, F> { shape, src, first: tile * COLUMNS, rows: rows.clone(), states });
            }
        }
    });
    let (total, rest) = states.split_at_mut(width);
    for part in rest.chunks_exact(width) {
        for (a, &b) in total.iter_mut().zip(part) {
            *a = F::merge(*a, b);
        }
    }
    for (dst, &state) in dst.iter_mut().zip(&*total) {
        *dst = F::finish(state, rows);
    }
}

/// Results whose innermost axis is reduced.
struct Rows<'a, T, F: Fold<T>> {
    shape: &'a Reduction,
    src: &'a [T],
    first: usize,
    dst: &'a mut [T],
    fold: F::State,
}

impl<T: Element, F: Fold<T>> Loop for Rows<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (rows, count) = (self.shape.rows(), self.shape.count());
        for (i, dst) in self.dst.iter_mut().enumerate() {
            let src = &self.src[self.shape.outer_offset(self.first + i)..];
            let state = if rows == 1 {
                fold_slice::<T, F>(&src[..self.shape.inner()])
            } else {
                fold_rows::<T, F>(self.shape, src, 0..rows)
            };
            *dst = F::finish(F::merge(self.fold, state), count);
        }
    }
}

/// A part of one result: some pieces of rows, `pieces` to a row.
struct Pieces<'a, T, F: Fold<T>> {
    shape: &'a Reduction,
    src: &'a [T],
    range: Range<usize>,
    pieces: usize,
    fold: F::State,
}

impl<T: Element, F: Fold<T>> Loop for Pieces<'_, T, F> {
    type Output = F::State;

    #[inline(always)]
    fn run(self) -> F::State {
        let inner = self.shape.inner();
        let mut state = self.fold;
        for item in self.range {
            let (row, piece) = (item / self.pieces, item % self.pieces);
            let at = self.shape.row_offset(row);
            let range = at + inner * piece / self.pieces..at + inner * (piece + 1) / self.pieces;
            state = F::merge(state, fold_slice::<T, F>(&self.src[range]));
        }
        state
    }
}

/// States of neighbouring columns from `first` on, over some rows.
struct Columns<'a, T, F: Fold<T>> {
    shape: &'a Reduction,
    src: &'a [T],
    first: usize,
    rows: Range<usize>,
    states: &'a mut [F::State],
}

impl<T: Element, F: Fold<T>> Loop for Columns<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.states.len();
        let mut block = [F::START; COLUMNS];
        let block = &mut block[..width];
        for start in self.rows.clone().step_by(ROWS) {
            block.fill(F::START);
            for row in start..self.rows.end.min(start + ROWS) {
                let src = &self.src[self.shape.row_offset(row) + self.first..][..width];
                for (state, &x) in block.iter_mut().zip(src) {
                    *state = F::take(*state, x);
                }
            }
            for (state, &more) in self.states.iter_mut().zip(&*block) {
                *state = F::merge(*state, more);
            }
        }
    }
}

#[inline(always)]
fn fold_rows<T: Element, F: Fold<T>>(shape: &Reduction, src: &[T], rows: Range<usize>) -> F::State {
    let mut total = F::START;
    for start in rows.clone().step_by(ROWS) {
        let mut block = F::START;
        for row in start..rows.end.min(start + ROWS) {
            block = F::merge(block, fold_slice::<T, F>(&src[shape.row_offset(row)..][..shape.inner()]));
        }
        total = F::merge(total, block);
    }
    total
}

/// Folds a slice block by block; partial results are joined as in a binary counter, which halves again and again.
#[inline(always)]
fn fold_slice<T: Element, F: Fold<T>>(src: &[T]) -> F::State {
    if src.len() <= BLOCK {
        return fold_block::<T, F>(src);
    }
    let mut levels = [F::START; usize::BITS as usize];
    let mut blocks = 0usize;
    for block in src.chunks(BLOCK) {
        let mut state = fold_block::<T, F>(block);
        let full = blocks.trailing_ones() as usize;
        for level in &levels[..full] {
            state = F::merge(*level, state);
        }
        levels[full] = state;
        blocks += 1;
    }
    let used = (0..levels.len()).filter(|level| blocks >> level & 1 == 1);
    used.fold(F::START, |state, level| F::merge(levels[level], state))
}

#[inline(always)]
fn fold_block<T: Element, F: Fold<T>>(src: &[T]) -> F::State {
    let mut rest = F::START;
    if src.len() < LANES {
        for &x in src {
            rest = F::take(rest, x);
        }
        return rest;
    }
    let mut lanes = [F::START; LANES];
    let (chunks, remainder) = src.as_chunks::<LANES>();
    for &x in remainder {
        rest = F::take(rest, x);
    }
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] = F::take(lanes[i], chunk[i]);
        }
    }
    // Seen through, the joining below would make the compiler shuffle lanes in the loop above.
    let mut lanes = black_box(lanes);
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = F::merge(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    F::merge(lanes[0], rest)
}

/// Calls `body` for every outer index on several threads.
pub(super) fn each_outer(pool: &Pool, outer: usize, cost: f32, body: impl Fn(usize) + Sync) {
    split(pool, outer, cost, 1, |range| range.for_each(&body));
}
