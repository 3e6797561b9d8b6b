//! Combines rows into rows selected by index, in input order where several go to the same row.

use std::sync::Mutex;

use crate::Pool;

/// Marks a row that goes nowhere.
pub const NOWHERE: usize = usize::MAX;

/// Work below this many nanoseconds stays on the calling thread.
const WORTHWHILE: f32 = 60_000.0;
/// How many rows are looked at to share out the work.
const SAMPLE: usize = 512;

/// Calls `combine(row, i)` for every `i`, in order where they meet: `row` is row `rows[i]` of `dst`; if there is no such
/// row, nothing is called. Rows are `width` long; `cost` is nanoseconds for one.
pub fn combine<T: Send>(
    pool: &Pool,
    cost: f32,
    dst: &mut [T],
    width: usize,
    rows: &[usize],
    combine: impl Fn(&mut [T], usize) + Sync,
) {
    if width == 0 || rows.is_empty() {
        return;
    }
    let threads = pool.threads();
    if threads == 1 || rows.len() as f32 * cost < WORTHWHILE {
        return part(dst, 0, width, rows, &combine);
    }
    let cuts = cuts(rows, dst.len() / width, threads);
    let mut parts = Vec::with_capacity(threads);
    let (mut rest, mut start) = (dst, 0);
    for cut in cuts {
        let (now, later) = rest.split_at_mut((cut - start) * width);
        parts.push(Mutex::new((start, now)));
        (rest, start) = (later, cut);
    }
    parts.push(Mutex::new((start, rest)));
    pool.run(parts.len(), &|i| {
        let mut guard = parts[i].lock().expect("each part is taken once");
        let (start, dst) = &mut *guard;
        part(dst, *start, width, rows, &combine);
    });
}

/// Those that go to `dst`, whose first row is row `start` of the whole.
fn part<T>(dst: &mut [T], start: usize, width: usize, rows: &[usize], combine: &impl Fn(&mut [T], usize)) {
    let count = dst.len() / width;
    for (i, &row) in rows.iter().enumerate() {
        let place = row.wrapping_sub(start);
        if place < count {
            combine(&mut dst[place * width..][..width], i);
        }
    }
}

/// Where to cut the destination so that each part gets about as many rows: quantiles of a sample.
fn cuts(rows: &[usize], count: usize, parts: usize) -> Vec<usize> {
    let step = rows.len().div_ceil(SAMPLE);
    let mut sample: Vec<usize> = rows.iter().step_by(step).map(|&row| row.min(count)).collect();
    sample.sort_unstable();
    (1..parts).map(|i| sample[i * sample.len() / parts]).collect()
}
