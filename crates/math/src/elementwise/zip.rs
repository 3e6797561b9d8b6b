//! Two arrays of one length in, one out.

use super::{Element, map};
use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::parallel::split_mut;

/// Writes `f(x, y)` for the pairs of `a` and `b`; all three are of one length.
pub fn zip<A: Element, B: Element, U: Element>(
    pool: &Pool,
    cost: f32,
    a: &[A],
    b: &[B],
    dst: &mut [U],
    f: impl Fn(A, B) -> U + Copy + Send + Sync,
) {
    assert!(a.len() == dst.len() && b.len() == dst.len(), "zip: lengths {}, {}, {}", a.len(), b.len(), dst.len());
    split_mut(pool, cost, dst, |start, dst| {
        let (a, b) = (&a[start..][..dst.len()], &b[start..][..dst.len()]);
        vectorize(Zip { a, b, dst, f })
    });
}

/// Replaces every `x` of `a` by `f(x, y)`.
pub fn zip_in_place_left<A: Element, B: Element>(
    pool: &Pool,
    cost: f32,
    a: &mut [A],
    b: &[B],
    f: impl Fn(A, B) -> A + Copy + Send + Sync,
) {
    assert_eq!(a.len(), b.len(), "zip in place: lengths {} and {}", a.len(), b.len());
    split_mut(pool, cost, a, |start, a| vectorize(ZipInPlace { b: &b[start..][..a.len()], a, f }));
}

/// Replaces every `y` of `b` by `f(x, y)`.
pub fn zip_in_place_right<A: Element, B: Element>(
    pool: &Pool,
    cost: f32,
    a: &[A],
    b: &mut [B],
    f: impl Fn(A, B) -> B + Copy + Send + Sync,
) {
    zip_in_place_left(pool, cost, b, a, move |y, x| f(x, y));
}

/// Writes `f(a, y)` for every `y` of `b`.
pub fn zip_scalar_left<A: Element, B: Element, U: Element>(
    pool: &Pool,
    cost: f32,
    a: A,
    b: &[B],
    dst: &mut [U],
    f: impl Fn(A, B) -> U + Copy + Send + Sync,
) {
    map(pool, cost, b, dst, move |y| f(a, y));
}

/// Writes `f(x, b)` for every `x` of `a`.
pub fn zip_scalar_right<A: Element, B: Element, U: Element>(
    pool: &Pool,
    cost: f32,
    a: &[A],
    b: B,
    dst: &mut [U],
    f: impl Fn(A, B) -> U + Copy + Send + Sync,
) {
    map(pool, cost, a, dst, move |x| f(x, b));
}

pub(crate) struct Zip<'a, A, B, U, F> {
    pub(crate) a: &'a [A],
    pub(crate) b: &'a [B],
    pub(crate) dst: &'a mut [U],
    pub(crate) f: F,
}

impl<A: Copy, B: Copy, U, F: Fn(A, B) -> U> Loop for Zip<'_, A, B, U, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for ((dst, &x), &y) in self.dst.iter_mut().zip(self.a).zip(self.b) {
            *dst = (self.f)(x, y);
        }
    }
}

struct ZipInPlace<'a, A, B, F> {
    a: &'a mut [A],
    b: &'a [B],
    f: F,
}

impl<A: Copy, B: Copy, F: Fn(A, B) -> A> Loop for ZipInPlace<'_, A, B, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (x, &y) in self.a.iter_mut().zip(self.b) {
            *x = (self.f)(*x, y);
        }
    }
}
