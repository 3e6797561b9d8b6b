//! Changing rows that a list of row numbers picks, some of them more than once.

use crate::Pool;
use crate::parallel::Shared;

/// Below this many elements a scatter stays on the calling thread.
const WORTHWHILE: usize = 32 << 10;

/// Calls `body(i, rows[i])` for every `i`. Calls for one row come in order and never at the same time; calls for
/// different rows may. `width` is how many elements a row has.
pub fn for_each_row(pool: &Pool, rows: &[usize], width: usize, body: impl Fn(usize, usize) + Sync) {
    let threads = pool.threads();
    if threads == 1 || rows.len().saturating_mul(width) < WORTHWHILE || rows.len() < threads {
        rows.iter().enumerate().for_each(|(i, &row)| body(i, row));
        return;
    }
    // Neighbouring rows share cache lines and pages, so each thread owns blocks of them.
    pool.run(threads, &|thread| {
        for (i, &row) in rows.iter().enumerate() {
            if (row >> 4) % threads == thread {
                body(i, row);
            }
        }
    });
}

/// Calls `body(row, update)` with each row of `dst` that `rows` picks and the row of `updates` that goes there.
/// An `updates` of one row goes to all of them.
pub fn scatter<T: Copy + Send + Sync>(
    pool: &Pool,
    dst: &mut [T],
    width: usize,
    rows: &[usize],
    updates: &[T],
    body: impl Fn(&mut [T], &[T]) + Sync,
) {
    let one = updates.len() == width && rows.len() != 1;
    assert!(one || updates.len() == rows.len() * width, "scatter: {} updates", updates.len());
    let len = dst.len();
    let shared = Shared::new(dst);
    for_each_row(pool, rows, width, |i, row| {
        assert!(row < usize::MAX / width.max(1) && (row + 1) * width <= len, "scatter: row {row}");
        // SAFETY: `for_each_row` never hands out one row to two threads.
        let dst = unsafe { shared.range(row * width..(row + 1) * width) };
        let from = if one { 0 } else { i * width };
        body(dst, &updates[from..from + width]);
    });
}

/// Copies `rows` of `src` to `dst`, one after the other.
pub fn gather<T: Copy + Send + Sync>(pool: &Pool, src: &[T], width: usize, rows: &[usize], dst: &mut [T]) {
    assert_eq!(dst.len(), rows.len() * width, "gather: {} rows of {width}", rows.len());
    if width == 0 {
        return;
    }
    let cost = 5.0 + 0.3 * width as f32;
    crate::parallel::split_rows_mut(pool, cost, dst, width, |first, chunk| {
        for (dst, &row) in chunk.chunks_exact_mut(width).zip(&rows[first..]) {
            dst.copy_from_slice(&src[row * width..(row + 1) * width]);
        }
    });
}
