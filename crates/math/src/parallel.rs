//! Cuts one loop into chunks that are worth a thread.

use std::marker::PhantomData;
use std::ops::Range;

use crate::Pool;

/// Below this many nanoseconds of work a loop stays on the calling thread.
const WORTHWHILE: f64 = 30_000.0;

/// Calls `body` with ranges that together cover `0..len`, on several threads when `len * cost` nanoseconds are worth
/// it. All ranges but the last start and end at multiples of `grain`.
pub fn split(pool: &Pool, len: usize, cost: f32, grain: usize, body: impl Fn(Range<usize>) + Sync) {
    if len == 0 {
        return;
    }
    if len <= grain {
        return body(0..len);
    }
    let chunk = chunk_len(pool, len, cost, grain);
    if chunk >= len {
        return body(0..len);
    }
    pool.run(len.div_ceil(chunk), &|i| body(i * chunk..len.min((i + 1) * chunk)));
}

/// Calls `body(start, chunk)` with chunks of `dst` that begin at element `start`; `cost` is nanoseconds for an element.
pub fn split_mut<T: Send>(pool: &Pool, cost: f32, dst: &mut [T], body: impl Fn(usize, &mut [T]) + Sync) {
    split_rows_mut(pool, cost * 64.0, dst, 64, |row, chunk| body(row * 64, chunk));
}

/// Calls `body(row, rows)` with groups of whole rows of `dst` (the last may be short) that begin at row `row`; `cost` is
/// nanoseconds for a row.
pub fn split_rows_mut<T: Send>(
    pool: &Pool,
    cost: f32,
    dst: &mut [T],
    width: usize,
    body: impl Fn(usize, &mut [T]) + Sync,
) {
    if dst.is_empty() {
        return;
    }
    let len = dst.len();
    let shared = Shared::new(dst);
    split(pool, len.div_ceil(width), cost, 1, |rows| {
        // SAFETY: `split` hands out disjoint ranges of rows, and each ends inside the slice.
        let chunk = unsafe { shared.range(rows.start * width..len.min(rows.end * width)) };
        body(rows.start, chunk)
    });
}

fn chunk_len(pool: &Pool, len: usize, cost: f32, grain: usize) -> usize {
    let work = len as f64 * f64::from(cost);
    if pool.threads() == 1 || work < WORTHWHILE {
        return len;
    }
    let pieces = ((work / (WORTHWHILE / 2.0)) as usize).clamp(2, pool.threads() * 4);
    len.div_ceil(pieces).next_multiple_of(grain)
}

/// A slice that several threads write, each its own part.
pub struct Shared<'a, T> {
    start: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: a part of the slice is reached only through `range`, whose callers promise that no two parts overlap.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    /// Takes the slice for as long as its parts are in use.
    pub fn new(slice: &'a mut [T]) -> Shared<'a, T> {
        Shared { start: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// One part of the slice.
    ///
    /// # Safety
    /// No other part that overlaps this one may be in use.
    #[allow(clippy::mut_from_ref)]
    #[inline]
    pub unsafe fn range(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of a slice of {}", self.len);
        // SAFETY: inside the slice, checked above; not shared, which the caller promises.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// One part of the slice, to read.
    ///
    /// # Safety
    /// No part that overlaps this one may be written meanwhile.
    #[inline]
    pub unsafe fn read(&self, range: Range<usize>) -> &[T] {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of a slice of {}", self.len);
        // SAFETY: inside the slice, checked above; not written, which the caller promises.
        unsafe { std::slice::from_raw_parts(self.start.add(range.start), range.len()) }
    }
}
