//! Running sums, products and logarithms of sums along an axis.

use crate::Pool;
use crate::function::{Number, Real};
use crate::parallel::Shared;

/// Which elements a running result covers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direction {
    /// All before the element, without itself.
    pub exclusive: bool,
    /// From the end of the axis towards its start.
    pub reverse: bool,
}

/// Running sums along the middle of `[outer, len, inner]`.
pub fn cumsum<T: Number>(pool: &Pool, dims: [usize; 3], direction: Direction, src: &[T], dst: &mut [T]) {
    scan(pool, 2.0, dims, direction, T::ZERO, src, dst, T::add);
}

/// Running products along the middle of `[outer, len, inner]`.
pub fn cumprod<T: Number>(pool: &Pool, dims: [usize; 3], direction: Direction, src: &[T], dst: &mut [T]) {
    scan(pool, 2.0, dims, direction, T::ONE, src, dst, T::mul);
}

/// Logarithms of running sums of exponentials along the middle of `[outer, len, inner]`.
pub fn cumulative_logsumexp<T: Real>(pool: &Pool, dims: [usize; 3], direction: Direction, src: &[T], dst: &mut [T]) {
    scan(pool, 20.0, dims, direction, T::LOWEST, src, dst, log_add_exp);
}

/// `log(exp(a) + exp(b))`.
fn log_add_exp<T: Real>(a: T, b: T) -> T {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    // Equal infinities have no difference.
    let gap = if low == high { T::ZERO } else { low.sub(high) };
    high.add(gap.exp().log1p())
}

#[allow(clippy::too_many_arguments)]
fn scan<T: Number>(
    pool: &Pool,
    cost: f32,
    [outer, len, inner]: [usize; 3],
    direction: Direction,
    start: T,
    src: &[T],
    dst: &mut [T],
    join: impl Fn(T, T) -> T + Copy + Sync,
) {
    assert!(src.len() == outer * len * inner && dst.len() == src.len(), "scan: lengths");
    let shared = Shared::new(dst);
    super::run::each_outer(pool, outer, cost * (len * inner) as f32, |i| {
        let range = i * len * inner..(i + 1) * len * inner;
        // SAFETY: the ranges of different outer indices are disjoint.
        let dst = unsafe { shared.range(range.clone()) };
        scan_one(len, inner, direction, start, &src[range], dst, join);
    });
}

fn scan_one<T: Number>(
    len: usize,
    inner: usize,
    direction: Direction,
    start: T,
    src: &[T],
    dst: &mut [T],
    join: impl Fn(T, T) -> T,
) {
    let mut sums = vec![start; inner];
    for step in 0..len {
        let row = if direction.reverse { len - 1 - step } else { step };
        let range = row * inner..(row + 1) * inner;
        for ((sum, &x), dst) in sums.iter_mut().zip(&src[range.clone()]).zip(&mut dst[range]) {
            let next = join(*sum, x);
            *dst = if direction.exclusive { *sum } else { next };
            *sum = next;
        }
    }
}
