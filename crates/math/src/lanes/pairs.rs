//! Functions of two elements.

use std::ops::Range;

use super::another;
use super::chunk::{Operand, pairs, pairs_singly};
use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::elementwise::{Broadcast, Element, Visit, cost};
use crate::parallel::split;

/// Runs of the result shorter than this are gathered before the function sees them.
const SHORT: usize = 16;
/// How many elements are gathered.
const GATHERED: usize = 256;

/// How two operands meet.
#[derive(Clone, Copy)]
pub enum Meeting<'a> {
    /// Both are as long as the result, or have one element.
    Flat,
    /// As this shape says.
    Broadcast(&'a Broadcast),
}

/// A function of two elements, compiled to a loop.
#[derive(Clone, Copy)]
pub struct Pairs<A, B, U> {
    /// Needs what `chunk::pairs` needs.
    run: unsafe fn(Operand<A>, Operand<B>, *mut U, usize),
    cost: f32,
}

impl<A: Element, B: Element, U: Element> Pairs<A, B, U> {
    /// A function that vectorises; `f` must not capture anything.
    pub fn vector<F: Fn(A, B) -> U + Copy>(_: F) -> Pairs<A, B, U> {
        Pairs { run: run_vector::<A, B, U, F>, cost: cost::SIMPLE }
    }

    /// A function that is computed one by one; `f` must not capture anything.
    pub fn scalar<F: Fn(A, B) -> U + Copy>(_: F) -> Pairs<A, B, U> {
        Pairs { run: run_scalar::<A, B, U, F>, cost: cost::SCALAR }
    }

    /// The same function with an estimated cost in nanoseconds per element.
    pub fn costing(self, cost: f32) -> Pairs<A, B, U> {
        Pairs { cost, ..self }
    }

    /// Writes the function of the pairs that meet.
    ///
    /// # Panics
    /// If the lengths are inconsistent.
    pub fn apply(&self, pool: &Pool, meeting: Meeting<'_>, a: &[A], b: &[B], dst: &mut [U]) {
        check(meeting, [a.len(), b.len()], dst.len());
        let job = Job { pairs: *self, meeting, a: operand(a), b: operand(b), dst: dst.as_mut_ptr() };
        // SAFETY: lengths are checked, and a shared slice does not overlap an exclusive one.
        unsafe { job.run(pool, dst.len()) };
    }
}

impl<T: Element, B: Element> Pairs<T, B, T> {
    /// As `apply`, where the result takes the place of the left operand, which is as long.
    ///
    /// # Panics
    /// If the lengths are inconsistent.
    pub fn apply_left(&self, pool: &Pool, meeting: Meeting<'_>, a: &mut [T], b: &[B]) {
        check(meeting, [a.len(), b.len()], a.len());
        let (len, dst) = (a.len(), a.as_mut_ptr());
        let a = Operand { start: dst, advances: len != 1 };
        let job = Job { pairs: *self, meeting, a, b: operand(b), dst };
        // SAFETY: lengths are checked, and an operand as long as the result is in the result's order.
        unsafe { job.run(pool, len) };
    }
}

impl<A: Element, T: Element> Pairs<A, T, T> {
    /// As `apply`, where the result takes the place of the right operand, which is as long.
    ///
    /// # Panics
    /// If the lengths are inconsistent.
    pub fn apply_right(&self, pool: &Pool, meeting: Meeting<'_>, a: &[A], b: &mut [T]) {
        check(meeting, [a.len(), b.len()], b.len());
        let (len, dst) = (b.len(), b.as_mut_ptr());
        let b = Operand { start: dst, advances: len != 1 };
        let job = Job { pairs: *self, meeting, a: operand(a), b, dst };
        // SAFETY: lengths are checked, and an operand as long as the result is in the result's order.
        unsafe { job.run(pool, len) };
    }
}

fn operand<T>(values: &[T]) -> Operand<T> {
    Operand { start: values.as_ptr(), advances: values.len() != 1 }
}

fn check(meeting: Meeting<'_>, lens: [usize; 2], out: usize) {
    match meeting {
        Meeting::Flat => {
            let fits = out == 0 || lens.iter().all(|&len| len == out || len == 1);
            assert!(fits, "pairs: {} and {} elements for {out}", lens[0], lens[1]);
        }
        Meeting::Broadcast(shape) => {
            let expected = [shape.operand_len(0), shape.operand_len(1)];
            assert!(lens == expected && out == shape.out_len(), "pairs: {lens:?} elements for {expected:?}");
        }
    }
}

/// A function and where its elements are.
struct Job<'a, A, B, U> {
    pairs: Pairs<A, B, U>,
    meeting: Meeting<'a>,
    a: Operand<A>,
    b: Operand<B>,
    dst: *mut U,
}

// SAFETY: threads read operands and write disjoint ranges of the result; see `Job::run`.
unsafe impl<A: Sync, B: Sync, U: Send> Sync for Job<'_, A, B, U> {}

impl<A: Element, B: Element, U: Element> Job<'_, A, B, U> {
    /// # Safety
    /// `check` passed for the operands and `len` elements of the result; the result overlaps an operand only if
    /// that is as long, element on element.
    unsafe fn run(&self, pool: &Pool, len: usize) {
        // SAFETY: ranges are inside `0..len`, and no two threads have the same.
        split(pool, len, self.pairs.cost, 64, |range| unsafe {
            match self.meeting {
                Meeting::Flat => self.run_flat(range),
                Meeting::Broadcast(shape) if shape.inner_len() < SHORT => self.run_gathered(shape, range),
                Meeting::Broadcast(shape) => {
                    shape.walk(range.clone(), &mut Segments { job: self, first: range.start, steps: shape.advances() })
                }
            }
        });
    }

    /// # Safety
    /// As for `run`, and the range is inside.
    unsafe fn run_flat(&self, range: Range<usize>) {
        // SAFETY: an operand that advances is as long as the result.
        unsafe {
            let (a, b) = (self.a.from(range.start), self.b.from(range.start));
            (self.pairs.run)(a, b, self.dst.add(range.start), range.len());
        }
    }

    /// # Safety
    /// As for `run`, and the range is inside.
    unsafe fn run_gathered(&self, shape: &Broadcast, range: Range<usize>) {
        // SAFETY: there are elements, since the range is not empty.
        let (a, b) = unsafe { ([*self.a.start; GATHERED], [*self.b.start; GATHERED]) };
        let mut gather = Gather { job: self, a, b, filled: 0, done: range.start, steps: shape.advances() };
        shape.walk(range, &mut gather);
        gather.flush();
    }
}

impl<T> Operand<T> {
    /// The operand from element `at` on.
    ///
    /// # Safety
    /// The operand has at least `at` elements, or is a broadcast scalar.
    unsafe fn from(self, at: usize) -> Operand<T> {
        // SAFETY: promised by the caller.
        let start = if self.advances { unsafe { self.start.add(at) } } else { self.start };
        Operand { start, ..self }
    }
}

/// Calls the function for each run of the result.
struct Segments<'a, 'b, A, B, U> {
    job: &'a Job<'b, A, B, U>,
    first: usize,
    steps: [bool; 2],
}

impl<A: Element, B: Element, U: Element> Visit<2> for Segments<'_, '_, A, B, U> {
    fn segment(&mut self, start: usize, len: usize, [a, b]: [usize; 2]) {
        let job = self.job;
        // SAFETY: the shape was checked against the lengths, and visits only what is inside.
        unsafe {
            let a = Operand { start: job.a.start.add(a), advances: self.steps[0] };
            let b = Operand { start: job.b.start.add(b), advances: self.steps[1] };
            (job.pairs.run)(a, b, job.dst.add(self.first + start), len);
        }
    }
}

/// Collects the elements of many short runs, then calls the function for all.
struct Gather<'a, 'b, A, B, U> {
    job: &'a Job<'b, A, B, U>,
    a: [A; GATHERED],
    b: [B; GATHERED],
    filled: usize,
    done: usize,
    steps: [bool; 2],
}

impl<A: Element, B: Element, U: Element> Gather<'_, '_, A, B, U> {
    fn flush(&mut self) {
        let a = Operand { start: self.a.as_ptr(), advances: true };
        let b = Operand { start: self.b.as_ptr(), advances: true };
        // SAFETY: this many elements were gathered for these places of the result, all in bounds.
        unsafe { (self.job.pairs.run)(a, b, self.job.dst.add(self.done), self.filled) };
        self.done += self.filled;
        self.filled = 0;
    }
}

impl<A: Element, B: Element, U: Element> Visit<2> for Gather<'_, '_, A, B, U> {
    #[inline(always)]
    fn segment(&mut self, _: usize, len: usize, [a, b]: [usize; 2]) {
        if self.filled + len > GATHERED {
            self.flush();
        }
        let (step_a, step_b) = (usize::from(self.steps[0]), usize::from(self.steps[1]));
        let to_a = &mut self.a[self.filled..][..len];
        let to_b = &mut self.b[self.filled..][..len];
        for i in 0..len {
            // SAFETY: the shape was checked against the lengths, and visits only what is inside.
            unsafe {
                to_a[i] = *self.job.a.start.add(a + i * step_a);
                to_b[i] = *self.job.b.start.add(b + i * step_b);
            }
        }
        self.filled += len;
    }
}

struct Chunks<A, B, U, F> {
    a: Operand<A>,
    b: Operand<B>,
    dst: *mut U,
    len: usize,
    f: F,
}

impl<A: Copy, B: Copy, U, F: Fn(A, B) -> U> Loop for Chunks<A, B, U, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // SAFETY: promised by the callers of `run_vector`, who alone make one.
        unsafe { pairs(self.a, self.b, self.dst, self.len, self.f) }
    }
}

/// # Safety
/// As for `chunk::pairs`.
unsafe fn run_vector<A: Copy, B: Copy, U, F: Fn(A, B) -> U + Copy>(
    a: Operand<A>,
    b: Operand<B>,
    dst: *mut U,
    len: usize,
) {
    vectorize(Chunks { a, b, dst, len, f: another::<F>() });
}

/// # Safety
/// As for `chunk::pairs`.
unsafe fn run_scalar<A: Copy, B: Copy, U, F: Fn(A, B) -> U + Copy>(
    a: Operand<A>,
    b: Operand<B>,
    dst: *mut U,
    len: usize,
) {
    // SAFETY: promised by the caller.
    unsafe { pairs_singly(a, b, dst, len, another::<F>()) }
}
