//! Transforms between rows of real numbers and the first halves of their frequencies.

use super::rows::fit_row;
use super::{Plans, Real, Rows, cost};
use crate::Pool;
use crate::parallel::split_rows_mut;
use num_complex::Complex;

/// Transforms rows of `width` real numbers, cropped or padded to `len`, into rows of `len / 2 + 1` frequencies.
pub fn forward_rows<T: Real>(
    pool: &Pool,
    plans: &Plans<T>,
    rows: &Rows,
    [width, len]: [usize; 2],
    from: &[T],
    to: &mut [Complex<T>],
) {
    if to.is_empty() {
        return;
    }
    let plan = &*plans.forward(len);
    split_rows_mut(pool, cost(len) * 0.6, to, len / 2 + 1, |first, chunk| {
        let mut row = vec![T::default(); len];
        let mut scratch = plan.make_scratch_vec();
        for (number, to) in chunk.chunks_exact_mut(len / 2 + 1).enumerate() {
            fit_row(rows.source(first + number).map(|row| &from[row * width..][..width]), &mut row);
            let done = plan.process_with_scratch(&mut row, to, &mut scratch);
            debug_assert!(done.is_ok(), "the lengths are those of the plan");
        }
    });
}

/// Transforms rows of `width` frequencies, of which the first `len / 2 + 1` count, into rows of `len` real numbers, and
/// multiplies by `scale`.
pub fn inverse_rows<T: Real>(
    pool: &Pool,
    plans: &Plans<T>,
    [width, len]: [usize; 2],
    scale: f64,
    from: &[Complex<T>],
    to: &mut [T],
) {
    if to.is_empty() {
        return;
    }
    let (plan, scale) = (&*plans.inverse(len), T::of(scale));
    split_rows_mut(pool, cost(len) * 0.6, to, len, |first, chunk| {
        let mut row = vec![Complex::default(); len / 2 + 1];
        let mut scratch = plan.make_scratch_vec();
        for (number, to) in chunk.chunks_exact_mut(len).enumerate() {
            fit_row(Some(&from[(first + number) * width..][..width]), &mut row);
            drop_imaginary(&mut row, len);
            let done = plan.process_with_scratch(&mut row, to, &mut scratch);
            debug_assert!(done.is_ok(), "the lengths are those of the plan");
            to.iter_mut().for_each(|value| *value = *value * scale);
        }
    });
}

/// The frequencies of a real row are real at zero and at half of an even length; what else is there does not count.
fn drop_imaginary<T: Real>(row: &mut [Complex<T>], len: usize) {
    row[0].im = T::default();
    if len.is_multiple_of(2) {
        row[len / 2].im = T::default();
    }
}

/// Transforms rows of `len` real numbers that `fill` writes, and passes the frequencies of each to `emit` with its row,
/// of `width`, of `to`.
pub fn each_row<T: Real, V: Send>(
    pool: &Pool,
    plans: &Plans<T>,
    [len, width]: [usize; 2],
    to: &mut [V],
    fill: impl Fn(usize, &mut [T]) + Sync,
    emit: impl Fn(&[Complex<T>], &mut [V]) + Sync,
) {
    if to.is_empty() {
        return;
    }
    let plan = &*plans.forward(len);
    split_rows_mut(pool, cost(len), to, width, |first, chunk| {
        let mut row = vec![T::default(); len];
        let mut frequencies = plan.make_output_vec();
        let mut scratch = plan.make_scratch_vec();
        for (number, to) in chunk.chunks_exact_mut(width).enumerate() {
            fill(first + number, &mut row);
            let done = plan.process_with_scratch(&mut row, &mut frequencies, &mut scratch);
            debug_assert!(done.is_ok(), "the lengths are those of the plan");
            emit(&frequencies, to);
        }
    });
}
