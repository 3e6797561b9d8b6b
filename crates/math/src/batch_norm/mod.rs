//! Normalisation of every channel over a batch, channels last, with its derivative.
//!
//! Values may be half floats; everything that is summed is `f32` within a block and `f64` across blocks.

mod columns;
mod grad;
mod moments;

pub use grad::{GradSums, grad_input, grad_sums};
pub use moments::moments;

use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::parallel::split_rows_mut;
use crate::reduce::Accumulate;

/// A number that is computed with as `f32`.
pub trait Normal: Accumulate<Sum = f32> {}

impl<T: Accumulate<Sum = f32>> Normal for T {}

/// The values of each channel are repeated to at least this length, so that the vector loop over them is long enough
/// to amortise its start.
const WIDE: usize = 256;

/// `y = (x - mean) * factor + offset`, each by channel; negative results become zero if `relu`.
///
/// # Panics
/// If the lengths are inconsistent.
pub fn normalize<T: Normal>(
    pool: &Pool,
    x: &[T],
    mean: &[f32],
    factor: &[f32],
    offset: &[f32],
    relu: bool,
    y: &mut [T],
) {
    let depth = mean.len();
    assert_eq!(x.len(), y.len(), "normalize: lengths");
    assert!(factor.len() == depth && offset.len() == depth, "normalize: numbers of channels");
    if x.is_empty() {
        return;
    }
    assert!(x.len().is_multiple_of(depth), "normalize: {} elements, {depth} channels", x.len());
    let times = WIDE.div_ceil(depth);
    let (mean, factor, offset) = (mean.repeat(times), factor.repeat(times), offset.repeat(times));
    let width = mean.len();
    split_rows_mut(pool, 0.4 * width as f32, y, width, |row, y| {
        let x = &x[row * width..][..y.len()];
        vectorize(Normalize { x, mean: &mean, factor: &factor, offset: &offset, relu, y });
    });
}

struct Normalize<'a, T> {
    x: &'a [T],
    mean: &'a [f32],
    factor: &'a [f32],
    offset: &'a [f32],
    relu: bool,
    y: &'a mut [T],
}

impl<T: Normal> Loop for Normalize<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.mean.len();
        for (y, x) in self.y.chunks_mut(width).zip(self.x.chunks(width)) {
            let len = y.len();
            let (mean, factor, offset) = (&self.mean[..len], &self.factor[..len], &self.offset[..len]);
            if self.relu {
                for i in 0..len {
                    let z = (x[i].to_sum() - mean[i]) * factor[i] + offset[i];
                    y[i] = T::from_sum(if z < 0.0 { 0.0 } else { z });
                }
            } else {
                for i in 0..len {
                    y[i] = T::from_sum((x[i].to_sum() - mean[i]) * factor[i] + offset[i]);
                }
            }
        }
    }
}
