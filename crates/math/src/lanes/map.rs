//! Functions of one element.

use super::another;
use super::chunk::{map, map_singly};
use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::elementwise::{Element, cost};
use crate::parallel::split;

/// A function of one element, compiled to a loop.
#[derive(Clone, Copy)]
pub struct Map<T, U> {
    /// Needs: both places have that many elements, and overlap only element on element.
    run: unsafe fn(*const T, *mut U, usize),
    cost: f32,
}

impl<T: Element, U: Element> Map<T, U> {
    /// A function that vectorises; `f` must not capture anything.
    pub fn vector<F: Fn(T) -> U + Copy>(_: F) -> Map<T, U> {
        Map { run: run_vector::<T, U, F>, cost: cost::SIMPLE }
    }

    /// A function that is computed one by one; `f` must not capture anything.
    pub fn scalar<F: Fn(T) -> U + Copy>(_: F) -> Map<T, U> {
        Map { run: run_scalar::<T, U, F>, cost: cost::SCALAR }
    }

    /// The same function with an estimated cost in nanoseconds per element.
    pub fn costing(self, cost: f32) -> Map<T, U> {
        Map { cost, ..self }
    }

    /// Writes the function of every element of `src`; `dst` is as long.
    pub fn apply(&self, pool: &Pool, src: &[T], dst: &mut [U]) {
        assert_eq!(src.len(), dst.len(), "map: lengths {} and {}", src.len(), dst.len());
        let job = Job { map: *self, src: src.as_ptr(), dst: dst.as_mut_ptr() };
        // SAFETY: both are slices of this length, and a shared one does not overlap an exclusive one.
        unsafe { job.run(pool, src.len()) };
    }
}

impl<T: Element> Map<T, T> {
    /// Replaces every element by its function.
    pub fn apply_in_place(&self, pool: &Pool, values: &mut [T]) {
        let dst = values.as_mut_ptr();
        let job = Job { map: *self, src: dst, dst };
        // SAFETY: every element overlaps with itself only.
        unsafe { job.run(pool, values.len()) };
    }
}

/// A function and where its elements are.
struct Job<T, U> {
    map: Map<T, U>,
    src: *const T,
    dst: *mut U,
}

// SAFETY: threads work on disjoint ranges; see `Job::run`.
unsafe impl<T: Sync, U: Send> Sync for Job<T, U> {}

impl<T: Element, U: Element> Job<T, U> {
    /// # Safety
    /// Both places have `len` elements, and overlap only element on element.
    unsafe fn run(&self, pool: &Pool, len: usize) {
        split(pool, len, self.map.cost, 64, |range| {
            // SAFETY: the range is inside, and no other thread has it.
            unsafe { (self.map.run)(self.src.add(range.start), self.dst.add(range.start), range.len()) };
        });
    }
}

struct Chunks<T, U, F> {
    src: *const T,
    dst: *mut U,
    len: usize,
    f: F,
}

impl<T: Copy, U, F: Fn(T) -> U> Loop for Chunks<T, U, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // SAFETY: promised by the callers of `run_vector`, who alone make one.
        unsafe { map(self.src, self.dst, self.len, self.f) }
    }
}

/// # Safety
/// As for `Map::run`.
unsafe fn run_vector<T: Copy, U, F: Fn(T) -> U + Copy>(src: *const T, dst: *mut U, len: usize) {
    vectorize(Chunks { src, dst, len, f: another::<F>() });
}

/// # Safety
/// As for `Map::run`.
unsafe fn run_scalar<T: Copy, U, F: Fn(T) -> U + Copy>(src: *const T, dst: *mut U, len: usize) {
    // SAFETY: promised by the caller.
    unsafe { map_singly(src, dst, len, another::<F>()) }
}
