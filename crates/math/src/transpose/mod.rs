//! Permuted axes.

mod block;
mod shape;

pub use shape::Permutation;

use crate::Pool;
use crate::elementwise::Element;
use crate::parallel::{Shared, split};

/// Writes `src`, of the permutation's input shape, with its axes in the new order.
pub fn transpose<T: Element>(pool: &Pool, permutation: &Permutation, src: &[T], dst: &mut [T]) {
    assert!(src.len() == permutation.len() && dst.len() == src.len(), "transpose: lengths");
    if src.is_empty() {
        return;
    }
    let cost = 0.2 + 0.1 * size_of::<T>() as f32;
    match permutation.inner_run() {
        Some(run) => copy_runs(pool, cost, permutation, run, src, dst),
        None => block::transpose_matrices(pool, cost, permutation, src, dst),
    }
}

/// As `transpose`, for elements that are cloned one by one.
pub fn transpose_clone<T: Clone>(permutation: &Permutation, src: &[T]) -> Vec<T> {
    assert_eq!(src.len(), permutation.len(), "transpose: length");
    (0..src.len()).map(|i| src[permutation.source(i)].clone()).collect()
}

/// The innermost axis stays innermost: whole runs are copied.
fn copy_runs<T: Element>(pool: &Pool, cost: f32, permutation: &Permutation, run: usize, src: &[T], dst: &mut [T]) {
    let runs = src.len() / run;
    let shared = Shared::new(dst);
    split(pool, runs, cost * run as f32, 1, |range| {
        // SAFETY: `split` hands out disjoint ranges of runs.
        let dst = unsafe { shared.range(range.start * run..range.end * run) };
        let mut walk = permutation.walk(range.start * run);
        for dst in dst.chunks_exact_mut(run) {
            copy_run(dst, &src[walk.at()..][..run]);
            walk.advance_run();
        }
    });
}

/// A short run is copied in line, as a call of memcpy would take longer than the copy.
#[inline(always)]
fn copy_run<T: Copy>(dst: &mut [T], src: &[T]) {
    if dst.len() <= 8 {
        for (dst, &x) in dst.iter_mut().zip(src) {
            *dst = x;
        }
    } else {
        dst.copy_from_slice(src);
    }
}
