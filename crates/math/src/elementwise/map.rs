//! One array in, one array out.

use super::Element;
use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::parallel::split_mut;

/// Writes `f(x)` for every `x` of `src`; `dst` is as long.
pub fn map<T: Element, U: Element>(
    pool: &Pool,
    cost: f32,
    src: &[T],
    dst: &mut [U],
    f: impl Fn(T) -> U + Copy + Send + Sync,
) {
    assert_eq!(src.len(), dst.len(), "map: lengths {} and {}", src.len(), dst.len());
    split_mut(pool, cost, dst, |start, dst| vectorize(Map { src: &src[start..][..dst.len()], dst, f }));
}

/// As `map` with `fast`, which vectorises, but with `exact` for those elements that are `rare`.
///
/// A choice inside of one function would keep the whole loop from vectorising.
pub fn map_guarded<T: Element, U: Element>(
    pool: &Pool,
    cost: f32,
    src: &[T],
    dst: &mut [U],
    fast: impl Fn(T) -> U + Copy + Send + Sync,
    rare: impl Fn(T) -> bool + Copy + Send + Sync,
    exact: impl Fn(T) -> U + Copy + Send + Sync,
) {
    assert_eq!(src.len(), dst.len(), "map: lengths {} and {}", src.len(), dst.len());
    split_mut(pool, cost, dst, |start, dst| {
        let src = &src[start..][..dst.len()];
        for (src, dst) in src.chunks(1024).zip(dst.chunks_mut(1024)) {
            vectorize(Map { src, dst, f: fast });
            if vectorize(Count { src, f: rare }) > 0 {
                src.iter().zip(dst).filter(|(x, _)| rare(**x)).for_each(|(x, dst)| *dst = exact(*x));
            }
        }
    });
}

/// Replaces every `x` by `f(x)`.
pub fn map_in_place<T: Element>(pool: &Pool, cost: f32, values: &mut [T], f: impl Fn(T) -> T + Copy + Send + Sync) {
    split_mut(pool, cost, values, |_, values| vectorize(MapInPlace { values, f }));
}

/// Sets every element to `value`.
pub fn fill<T: Element>(pool: &Pool, dst: &mut [T], value: T) {
    split_mut(pool, 0.1, dst, |_, dst| dst.fill(value));
}

pub(crate) struct Map<'a, T, U, F> {
    pub(crate) src: &'a [T],
    pub(crate) dst: &'a mut [U],
    pub(crate) f: F,
}

impl<T: Copy, U, F: Fn(T) -> U> Loop for Map<'_, T, U, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (dst, &x) in self.dst.iter_mut().zip(self.src) {
            *dst = (self.f)(x);
        }
    }
}

struct MapInPlace<'a, T, F> {
    values: &'a mut [T],
    f: F,
}

impl<T: Copy, F: Fn(T) -> T> Loop for MapInPlace<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for x in self.values {
            *x = (self.f)(*x);
        }
    }
}

struct Count<'a, T, F> {
    src: &'a [T],
    f: F,
}

impl<T: Copy, F: Fn(T) -> bool> Loop for Count<'_, T, F> {
    type Output = u32;

    #[inline(always)]
    fn run(self) -> u32 {
        self.src.iter().map(|&x| u32::from((self.f)(x))).sum()
    }
}
