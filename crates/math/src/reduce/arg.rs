//! The position of the largest or smallest element.

use crate::Pool;
use crate::elementwise::Element;
use crate::function::Ordered;
use crate::parallel::split_rows_mut;

/// An integer that counts elements.
pub trait Position: Element {
    /// From a count that fits.
    fn at(index: usize) -> Self;
}

macro_rules! position {
    ($($t:ty),*) => {$(
        impl Position for $t {
            #[inline(always)]
            fn at(index: usize) -> $t {
                index as $t
            }
        }
    )*};
}

position!(i16, u16, i32, i64);

/// The first position of the largest element along the middle of `[outer, len, inner]`; not-a-number never wins.
pub fn argmax<T: Ordered, I: Position>(pool: &Pool, [outer, len, inner]: [usize; 3], src: &[T], dst: &mut [I]) {
    extreme(pool, [outer, len, inner], src, dst, |x, best| x > best);
}

/// The first position of the smallest element along the middle of `[outer, len, inner]`; not-a-number never wins.
pub fn argmin<T: Ordered, I: Position>(pool: &Pool, [outer, len, inner]: [usize; 3], src: &[T], dst: &mut [I]) {
    extreme(pool, [outer, len, inner], src, dst, |x, best| x < best);
}

fn extreme<T: Ordered, I: Position>(
    pool: &Pool,
    [outer, len, inner]: [usize; 3],
    src: &[T],
    dst: &mut [I],
    beats: impl Fn(T, T) -> bool + Copy + Send + Sync,
) {
    assert_eq!(src.len(), outer * len * inner, "arg: length of the input");
    assert_eq!(dst.len(), outer * inner, "arg: length of the output");
    if src.is_empty() {
        return dst.fill(I::at(0));
    }
    split_rows_mut(pool, (len * inner) as f32, dst, inner, |first, dst| {
        let mut best = vec![T::ZERO; inner];
        for (i, dst) in dst.chunks_exact_mut(inner).enumerate() {
            let src = &src[(first + i) * len * inner..][..len * inner];
            if inner == 1 {
                dst[0] = I::at(position_of(src, beats));
            } else {
                positions_of(src, &mut best, dst, beats);
            }
        }
    });
}

fn position_of<T: Ordered>(src: &[T], beats: impl Fn(T, T) -> bool) -> usize {
    let Some(mut at) = src.iter().position(|x| x.is_number()) else { return 0 };
    for (i, &x) in src.iter().enumerate().skip(at + 1) {
        if beats(x, src[at]) {
            at = i;
        }
    }
    at
}

fn positions_of<T: Ordered, I: Position>(src: &[T], best: &mut [T], dst: &mut [I], beats: impl Fn(T, T) -> bool) {
    let width = best.len();
    best.copy_from_slice(&src[..width]);
    dst.fill(I::at(0));
    for (i, row) in src.chunks_exact(width).enumerate().skip(1) {
        for ((&x, best), dst) in row.iter().zip(&mut *best).zip(&mut *dst) {
            let was_no_number = !best.is_number() && x.is_number();
            if beats(x, *best) || was_no_number {
                (*best, *dst) = (x, I::at(i));
            }
        }
    }
}
