//! Complex transforms along any axis, in place.

use super::{Direction, Plans, Real, cost};
use crate::Pool;
use crate::parallel::{Shared, split, split_rows_mut};
use num_complex::Complex;
use rustfft::Fft;

/// Columns that are gathered and transformed together: two lines of the cache of single precision.
const COLUMNS: usize = 16;
/// Numbers of rows that are transformed by one call.
const TOGETHER: usize = 1 << 11;

/// Transforms `values`, of shape [outer, len, inner], along the axis of `len`, and multiplies by `scale`.
pub fn along<T: Real>(
    pool: &Pool,
    plans: &Plans<T>,
    direction: Direction,
    values: &mut [Complex<T>],
    [len, inner]: [usize; 2],
    scale: f64,
) {
    if values.is_empty() {
        return;
    }
    assert_eq!(values.len() % (len * inner), 0, "along: {} values of shape [?, {len}, {inner}]", values.len());
    let plan = &*plans.complex(len, direction);
    match inner {
        1 => rows(pool, plan, values, scale),
        _ => columns(pool, plan, values, inner, scale),
    }
}

fn rows<T: Real>(pool: &Pool, plan: &dyn Fft<T>, values: &mut [Complex<T>], scale: f64) {
    // Several short rows in one call, and few enough that they are still in the cache when they are multiplied.
    let together = (TOGETHER / plan.len()).max(1) * plan.len();
    split_rows_mut(pool, cost(plan.len()), values, plan.len(), |_, rows| {
        let mut scratch = vec![Complex::default(); plan.get_inplace_scratch_len()];
        for rows in rows.chunks_mut(together) {
            plan.process_with_scratch(rows, &mut scratch);
            multiply(rows, scale);
        }
    });
}

fn columns<T: Real>(pool: &Pool, plan: &dyn Fft<T>, values: &mut [Complex<T>], inner: usize, scale: f64) {
    let len = plan.len();
    let outer = values.len() / (len * inner);
    let blocks = inner.div_ceil(COLUMNS);
    let shared = Shared::new(values);
    split(pool, outer * blocks, (cost(len) + len as f32) * COLUMNS as f32, 1, |range| {
        let mut gathered = vec![Complex::default(); len * COLUMNS.min(inner)];
        let mut scratch = vec![Complex::default(); plan.get_inplace_scratch_len()];
        for block in range {
            let first = block % blocks * COLUMNS;
            let width = COLUMNS.min(inner - first);
            let start = block / blocks * len * inner + first;
            // SAFETY: each block has columns of its own, and `split` hands out every block once.
            let line = |row: usize| unsafe { shared.range(start + row * inner..start + row * inner + width) };
            let gathered = &mut gathered[..len * width];
            gather(gathered, len, |row| line(row));
            plan.process_with_scratch(gathered, &mut scratch);
            multiply(gathered, scale);
            scatter(gathered, len, line);
        }
    });
}

fn gather<'a, T: Real>(columns: &mut [Complex<T>], len: usize, line: impl Fn(usize) -> &'a mut [Complex<T>]) {
    for row in 0..len {
        for (column, &mut value) in line(row).iter_mut().enumerate() {
            columns[column * len + row] = value;
        }
    }
}

fn scatter<'a, T: Real>(columns: &[Complex<T>], len: usize, line: impl Fn(usize) -> &'a mut [Complex<T>]) {
    for row in 0..len {
        for (column, value) in line(row).iter_mut().enumerate() {
            *value = columns[column * len + row];
        }
    }
}

fn multiply<T: Real>(row: &mut [Complex<T>], scale: f64) {
    if scale != 1.0 {
        let scale = T::of(scale);
        row.iter_mut().for_each(|value| *value = *value * scale);
    }
}
