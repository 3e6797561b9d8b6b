//! Loops over operands of different shapes.

use std::ops::Range;

use super::shape::Visit;
use super::{Broadcast, Element, Zip};
use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::parallel::{split_mut, split_rows_mut};

/// Writes `f(x, y)` for the pairs that `shape` brings together.
pub fn broadcast<A: Element, B: Element, U: Element>(
    pool: &Pool,
    cost: f32,
    shape: &Broadcast,
    a: &[A],
    b: &[B],
    dst: &mut [U],
    f: impl Fn(A, B) -> U + Copy + Send + Sync,
) {
    check(shape, [a.len(), b.len()], dst.len());
    if let Some(width) = shape.short_row(1) {
        return short_rows(pool, cost, width, a, b, dst, f);
    }
    if let Some(width) = shape.short_row(0) {
        return short_rows(pool, cost, width, b, a, dst, move |y, x| f(x, y));
    }
    split_mut(pool, cost, dst, |start, dst| {
        let range = start..start + dst.len();
        vectorize(Walk { shape, range, visitor: Pairs { a, b, dst, f, advances: shape.advances() } })
    });
}

/// A matrix of short rows against one row: the row is written out many times, so that the loops get long.
fn short_rows<A: Element, B: Element, U: Element>(
    pool: &Pool,
    cost: f32,
    width: usize,
    matrix: &[A],
    row: &[B],
    dst: &mut [U],
    f: impl Fn(A, B) -> U + Copy + Send + Sync,
) {
    let row = row.repeat(512usize.div_ceil(width));
    split_rows_mut(pool, cost * row.len() as f32, dst, row.len(), |first, dst| {
        let matrix = &matrix[first * row.len()..][..dst.len()];
        for (a, dst) in matrix.chunks(row.len()).zip(dst.chunks_mut(row.len())) {
            vectorize(Zip { a, b: &row[..a.len()], dst, f });
        }
    });
}

/// Replaces every `x` of `a`, which has the shape of the result, by `f(x, y)`.
pub fn broadcast_in_place_left<A: Element, B: Element>(
    pool: &Pool,
    cost: f32,
    shape: &Broadcast,
    a: &mut [A],
    b: &[B],
    f: impl Fn(A, B) -> A + Copy + Send + Sync,
) {
    assert!(shape.is_whole(0), "in place: the left side is broadcast");
    in_place(pool, cost, shape, 1, a, b, f);
}

/// Replaces every `y` of `b`, which has the shape of the result, by `f(x, y)`.
pub fn broadcast_in_place_right<A: Element, B: Element>(
    pool: &Pool,
    cost: f32,
    shape: &Broadcast,
    a: &[A],
    b: &mut [B],
    f: impl Fn(A, B) -> B + Copy + Send + Sync,
) {
    assert!(shape.is_whole(1), "in place: the right side is broadcast");
    in_place(pool, cost, shape, 0, b, a, move |y, x| f(x, y));
}

fn in_place<A: Element, B: Element>(
    pool: &Pool,
    cost: f32,
    shape: &Broadcast,
    side: usize,
    values: &mut [A],
    other: &[B],
    f: impl Fn(A, B) -> A + Copy + Send + Sync,
) {
    assert_eq!(other.len(), shape.operand_len(side), "in place: length of the other operand");
    assert_eq!(values.len(), shape.out_len(), "in place: length of the result");
    split_mut(pool, cost, values, |start, values| {
        let range = start..start + values.len();
        let advances = shape.advances()[side];
        vectorize(Walk { shape, range, visitor: InPlace { values, other, side, advances, f } })
    });
}

/// Writes `a` where `cond` holds and `b` elsewhere, all three broadcast.
pub fn select<T: Element>(
    pool: &Pool,
    cost: f32,
    shape: &Broadcast<3>,
    cond: &[bool],
    a: &[T],
    b: &[T],
    dst: &mut [T],
) {
    check(shape, [cond.len(), a.len(), b.len()], dst.len());
    split_mut(pool, cost, dst, |start, dst| {
        let range = start..start + dst.len();
        vectorize(Walk { shape, range, visitor: Choice { cond, a, b, dst, advances: shape.advances() } })
    });
}

/// Repeats `src`, of shape `src_dims`, into the shape `dst_dims`, which it must broadcast to.
pub fn broadcast_to<T: Element>(pool: &Pool, src_dims: &[usize], dst_dims: &[usize], src: &[T], dst: &mut [T]) {
    let shape = Broadcast::of([src_dims, dst_dims]).filter(|shape| shape.out_dims() == dst_dims);
    let Some(shape) = shape else { panic!("{src_dims:?} does not broadcast to {dst_dims:?}") };
    check(&shape, [src.len(), dst.len()], dst.len());
    split_mut(pool, super::cost::SIMPLE, dst, |start, dst| {
        let range = start..start + dst.len();
        vectorize(Walk { shape: &shape, range, visitor: Repeat { src, dst, advances: shape.advances()[0] } })
    });
}

fn check<const N: usize>(shape: &Broadcast<N>, lens: [usize; N], out: usize) {
    for (i, len) in lens.into_iter().enumerate() {
        assert_eq!(len, shape.operand_len(i), "broadcast: length of operand {i}");
    }
    assert_eq!(out, shape.out_len(), "broadcast: length of the result");
}

struct Walk<'a, const N: usize, V> {
    shape: &'a Broadcast<N>,
    range: Range<usize>,
    visitor: V,
}

impl<const N: usize, V: Visit<N>> Loop for Walk<'_, N, V> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        self.shape.walk(self.range, &mut self.visitor);
    }
}

struct Pairs<'a, A, B, U, F> {
    a: &'a [A],
    b: &'a [B],
    dst: &'a mut [U],
    advances: [bool; 2],
    f: F,
}

impl<A: Copy, B: Copy, U, F: Fn(A, B) -> U> Visit<2> for Pairs<'_, A, B, U, F> {
    #[inline(always)]
    fn segment(&mut self, start: usize, len: usize, [a, b]: [usize; 2]) {
        let dst = &mut self.dst[start..][..len];
        match self.advances {
            [true, true] => {
                for ((dst, &x), &y) in dst.iter_mut().zip(&self.a[a..][..len]).zip(&self.b[b..][..len]) {
                    *dst = (self.f)(x, y);
                }
            }
            [true, false] => {
                let y = self.b[b];
                for (dst, &x) in dst.iter_mut().zip(&self.a[a..][..len]) {
                    *dst = (self.f)(x, y);
                }
            }
            _ => {
                let x = self.a[a];
                for (dst, &y) in dst.iter_mut().zip(&self.b[b..][..len]) {
                    *dst = (self.f)(x, y);
                }
            }
        }
    }
}

struct InPlace<'a, A, B, F> {
    values: &'a mut [A],
    other: &'a [B],
    side: usize,
    advances: bool,
    f: F,
}

impl<A: Copy, B: Copy, F: Fn(A, B) -> A> Visit<2> for InPlace<'_, A, B, F> {
    #[inline(always)]
    fn segment(&mut self, start: usize, len: usize, from: [usize; 2]) {
        let values = &mut self.values[start..][..len];
        let other = &self.other[from[self.side]..];
        if self.advances {
            for (x, &y) in values.iter_mut().zip(&other[..len]) {
                *x = (self.f)(*x, y);
            }
        } else {
            let y = other[0];
            for x in values {
                *x = (self.f)(*x, y);
            }
        }
    }
}

struct Choice<'a, T> {
    cond: &'a [bool],
    a: &'a [T],
    b: &'a [T],
    dst: &'a mut [T],
    advances: [bool; 3],
}

impl<T: Copy> Visit<3> for Choice<'_, T> {
    #[inline(always)]
    fn segment(&mut self, start: usize, len: usize, [cond, a, b]: [usize; 3]) {
        let dst = &mut self.dst[start..][..len];
        let [advances, a_advances, b_advances] = self.advances;
        match (advances, a_advances, b_advances) {
            (true, true, true) => {
                let sides = self.a[a..][..len].iter().zip(&self.b[b..][..len]);
                for ((dst, &cond), (&x, &y)) in dst.iter_mut().zip(&self.cond[cond..][..len]).zip(sides) {
                    *dst = if cond { x } else { y };
                }
            }
            (false, true, true) => {
                dst.copy_from_slice(if self.cond[cond] { &self.a[a..][..len] } else { &self.b[b..][..len] });
            }
            _ => {
                let step = self.advances.map(usize::from);
                for (i, dst) in dst.iter_mut().enumerate() {
                    let chosen = self.cond[cond + i * step[0]];
                    *dst = if chosen { self.a[a + i * step[1]] } else { self.b[b + i * step[2]] };
                }
            }
        }
    }
}

struct Repeat<'a, T> {
    src: &'a [T],
    dst: &'a mut [T],
    advances: bool,
}

impl<T: Copy> Visit<2> for Repeat<'_, T> {
    #[inline(always)]
    fn segment(&mut self, start: usize, len: usize, [from, _]: [usize; 2]) {
        let dst = &mut self.dst[start..][..len];
        if self.advances {
            dst.copy_from_slice(&self.src[from..][..len]);
        } else {
            dst.fill(self.src[from]);
        }
    }
}
