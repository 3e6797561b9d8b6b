//! Softmax over rows, its logarithm, and the cross entropies built on it.
//!
//! The work is done in the type that holds sums: `f32` for 16-bit floats.

use std::hint::black_box;

use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::function::{Number, Ordered, Real};
use crate::parallel::Shared;
use crate::reduce::Accumulate;

/// Elements worked on side by side.
const LANES: usize = 16;
/// Nanoseconds for an element.
const COST: f32 = 1.5;

/// A float with a type to do its sums in.
pub trait Logit: Real + Accumulate<Sum: Real> {}

impl<T: Real + Accumulate<Sum: Real>> Logit for T {}

/// Writes `exp(x) / sum(exp(x))` for every row of `src`.
pub fn softmax<T: Logit>(pool: &Pool, width: usize, src: &[T], dst: &mut [T]) {
    assert_eq!(src.len(), dst.len(), "softmax: lengths");
    each_row(pool, width, dst, |row, dst, terms| vectorize(Softmax { src: &src[row * width..][..width], dst, terms }));
}

/// Writes `x - log(sum(exp(x)))` for every row of `src`.
pub fn log_softmax<T: Logit>(pool: &Pool, width: usize, src: &[T], dst: &mut [T]) {
    assert_eq!(src.len(), dst.len(), "log softmax: lengths");
    each_row(pool, width, dst, |row, dst, terms| {
        vectorize(LogSoftmax { src: &src[row * width..][..width], dst, terms });
    });
}

/// Writes `log(sum(exp(x)))` of every row of `src`.
pub fn log_sum_exp<T: Logit>(pool: &Pool, width: usize, src: &[T], dst: &mut [T]) {
    assert_eq!(src.len(), dst.len() * width, "log sum exp: lengths");
    crate::parallel::split_rows_mut(pool, COST * width as f32, dst, 1, |first, dst| {
        let mut terms = vec![T::Sum::ZERO; width];
        for (i, dst) in dst.iter_mut().enumerate() {
            let src = &src[(first + i) * width..][..width];
            let (max, sum) = vectorize(Exponentials { src, terms: &mut terms });
            let infinite = max == T::Sum::LOWEST || max == T::Sum::HIGHEST;
            *dst = T::from_sum(if infinite { max } else { max.add(sum.log()) });
        }
    });
}

/// Writes the cross entropy between every row of `labels` and the softmax of `logits`, and its derivative by the logits.
pub fn softmax_cross_entropy<T: Logit>(
    pool: &Pool,
    width: usize,
    logits: &[T],
    labels: &[T],
    loss: &mut [T],
    backprop: &mut [T],
) {
    assert!(logits.len() == backprop.len() && labels.len() == backprop.len(), "cross entropy: lengths");
    assert_eq!(loss.len() * width, logits.len(), "cross entropy: length of the loss");
    let loss = Shared::new(loss);
    each_row(pool, width, backprop, |row, backprop, terms| {
        let range = row * width..(row + 1) * width;
        let (logits, labels) = (&logits[range.clone()], &labels[range]);
        // SAFETY: every row has a loss of its own, and every row is visited once.
        let loss = unsafe { &mut loss.range(row..row + 1)[0] };
        *loss = T::from_sum(vectorize(CrossEntropy { logits, labels, backprop, terms }));
    });
}

/// As `softmax_cross_entropy` for labels that are one at a class and zero elsewhere; a class is below `width`.
pub fn sparse_softmax_cross_entropy<T: Logit>(
    pool: &Pool,
    width: usize,
    logits: &[T],
    class: impl Fn(usize) -> usize + Sync,
    loss: &mut [T],
    backprop: &mut [T],
) {
    assert_eq!(logits.len(), backprop.len(), "sparse cross entropy: lengths");
    assert_eq!(loss.len() * width, logits.len(), "sparse cross entropy: length of the loss");
    let loss = Shared::new(loss);
    each_row(pool, width, backprop, |row, backprop, terms| {
        let src = &logits[row * width..][..width];
        let (max, sum) = vectorize(Exponentials { src, terms });
        vectorize(Scale { terms, factor: T::Sum::ONE.div(sum), dst: backprop });
        let class = class(row);
        backprop[class] = T::from_sum(terms[class].div(sum).sub(T::Sum::ONE));
        // SAFETY: every row has a loss of its own, and every row is visited once.
        let loss = unsafe { &mut loss.range(row..row + 1)[0] };
        *loss = T::from_sum(sum.log().sub(src[class].to_sum().sub(max)));
    });
}

/// Calls `body(row, row of dst, scratch as long as a row)` for all rows.
fn each_row<T: Logit>(pool: &Pool, width: usize, dst: &mut [T], body: impl Fn(usize, &mut [T], &mut [T::Sum]) + Sync) {
    if dst.is_empty() {
        return;
    }
    crate::parallel::split_rows_mut(pool, COST * width as f32, dst, width, |first, dst| {
        let mut terms = vec![T::Sum::ZERO; width];
        for (i, dst) in dst.chunks_exact_mut(width).enumerate() {
            body(first + i, dst, &mut terms);
        }
    });
}

/// Writes `exp(x - max)` and answers the maximum and the sum of what was written.
struct Exponentials<'a, T: Logit> {
    src: &'a [T],
    terms: &'a mut [T::Sum],
}

impl<T: Logit> Loop for Exponentials<'_, T> {
    type Output = (T::Sum, T::Sum);

    #[inline(always)]
    fn run(self) -> (T::Sum, T::Sum) {
        let max = largest(self.src);
        let mut lanes = [T::Sum::ZERO; LANES];
        let (src, src_rest) = self.src.as_chunks::<LANES>();
        let (terms, terms_rest) = self.terms.as_chunks_mut::<LANES>();
        for (terms, src) in terms.iter_mut().zip(src) {
            for i in 0..LANES {
                terms[i] = src[i].to_sum().sub(max).exp();
                lanes[i] = lanes[i].add(terms[i]);
            }
        }
        for (i, (term, x)) in terms_rest.iter_mut().zip(src_rest).enumerate() {
            *term = x.to_sum().sub(max).exp();
            lanes[i] = lanes[i].add(*term);
        }
        (max, join(lanes, T::Sum::add))
    }
}

#[inline(always)]
fn largest<T: Logit>(src: &[T]) -> T::Sum {
    let pick = |a: T::Sum, b: T::Sum| if b > a { b } else { a };
    let mut lanes = [T::Sum::LOWEST; LANES];
    let (chunks, rest) = src.as_chunks::<LANES>();
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] = pick(lanes[i], chunk[i].to_sum());
        }
    }
    let rest = rest.iter().fold(T::Sum::LOWEST, |a, b| pick(a, b.to_sum()));
    pick(join(lanes, pick), rest)
}

#[inline(always)]
fn join<S: Copy>(lanes: [S; LANES], f: impl Fn(S, S) -> S) -> S {
    // Seen through, the joining would make the compiler shuffle lanes in the loop before.
    let [first, rest @ ..] = black_box(lanes);
    rest.into_iter().fold(first, f)
}

struct Scale<'a, T: Logit> {
    terms: &'a [T::Sum],
    factor: T::Sum,
    dst: &'a mut [T],
}

impl<T: Logit> Loop for Scale<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (dst, term) in self.dst.iter_mut().zip(self.terms) {
            *dst = T::from_sum(term.mul(self.factor));
        }
    }
}

struct Softmax<'a, T: Logit> {
    src: &'a [T],
    dst: &'a mut [T],
    terms: &'a mut [T::Sum],
}

impl<T: Logit> Loop for Softmax<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (_, sum) = Exponentials { src: self.src, terms: self.terms }.run();
        Scale { terms: self.terms, factor: T::Sum::ONE.div(sum), dst: self.dst }.run();
    }
}

struct LogSoftmax<'a, T: Logit> {
    src: &'a [T],
    dst: &'a mut [T],
    terms: &'a mut [T::Sum],
}

impl<T: Logit> Loop for LogSoftmax<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (max, sum) = Exponentials { src: self.src, terms: self.terms }.run();
        let log = sum.log();
        for (dst, x) in self.dst.iter_mut().zip(self.src) {
            *dst = T::from_sum(x.to_sum().sub(max).sub(log));
        }
    }
}

struct CrossEntropy<'a, T: Logit> {
    logits: &'a [T],
    labels: &'a [T],
    backprop: &'a mut [T],
    terms: &'a mut [T::Sum],
}

impl<T: Logit> Loop for CrossEntropy<'_, T> {
    type Output = T::Sum;

    #[inline(always)]
    fn run(self) -> T::Sum {
        let (max, sum) = Exponentials { src: self.logits, terms: self.terms }.run();
        let (log, factor) = (sum.log(), T::Sum::ONE.div(sum));
        for ((backprop, term), label) in self.backprop.iter_mut().zip(&mut *self.terms).zip(self.labels) {
            *backprop = T::from_sum(term.mul(factor).sub(label.to_sum()));
        }
        let mut lanes = [T::Sum::ZERO; LANES];
        for (logits, labels) in self.logits.chunks(LANES).zip(self.labels.chunks(LANES)) {
            for ((lane, x), label) in lanes.iter_mut().zip(logits).zip(labels) {
                *lane = lane.add(label.to_sum().mul(log.sub(x.to_sum().sub(max))));
            }
        }
        join(lanes, T::Sum::add)
    }
}
