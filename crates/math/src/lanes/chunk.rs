//! The innermost loops: a chunk is loaded, computed, stored.

use std::mem::MaybeUninit;

/// Elements computed side by side: four vectors of `f32`.
pub(super) const WIDTH: usize = 32;

/// Where an operand is, and whether it advances with the result.
#[derive(Clone, Copy)]
pub(super) struct Operand<T> {
    pub start: *const T,
    pub advances: bool,
}

impl<T: Copy> Operand<T> {
    /// The `count` elements from `at` on; the rest is filled with `still`.
    ///
    /// # Safety
    /// The operand has elements `at .. at + count`, or stands still; `count` is at most `WIDTH`.
    #[inline(always)]
    unsafe fn load(self, at: usize, count: usize, still: [T; WIDTH]) -> [T; WIDTH] {
        if !self.advances {
            return still;
        }
        // SAFETY: in bounds by the caller's promise.
        unsafe {
            let from = self.start.add(at);
            if count == WIDTH {
                return *from.cast::<[T; WIDTH]>();
            }
            let mut chunk = still;
            std::ptr::copy_nonoverlapping(from, chunk.as_mut_ptr(), count);
            chunk
        }
    }

    /// The element at `at`.
    ///
    /// # Safety
    /// The operand has an element `at`, or stands still and has one.
    #[inline(always)]
    unsafe fn get(self, at: usize) -> T {
        // SAFETY: in bounds by the caller's promise.
        unsafe { *self.start.add(if self.advances { at } else { 0 }) }
    }
}

/// Stores the first `count` elements of a chunk.
///
/// # Safety
/// `dst` is writable for `count` elements; `count` is at most `WIDTH`.
#[inline(always)]
unsafe fn store<U>(dst: *mut U, count: usize, chunk: [MaybeUninit<U>; WIDTH]) {
    // SAFETY: in bounds by the caller's promise.
    unsafe {
        if count == WIDTH {
            *dst.cast::<[MaybeUninit<U>; WIDTH]>() = chunk;
        } else {
            std::ptr::copy_nonoverlapping(chunk.as_ptr().cast::<U>(), dst, count);
        }
    }
}

/// Writes `f(x, y)` to `dst`, chunk by chunk; `f` is also called for some pairs that are not written.
///
/// # Safety
/// Operands and `dst` have `len` elements (one that stands still has one); `dst` overlaps an operand only where
/// elements of one index share their place.
#[inline(always)]
pub(super) unsafe fn pairs<A: Copy, B: Copy, U>(
    a: Operand<A>,
    b: Operand<B>,
    dst: *mut U,
    len: usize,
    f: impl Fn(A, B) -> U,
) {
    if len == 0 {
        return;
    }
    // SAFETY: there is at least one element, so both operands have a first one.
    let (still_a, still_b) = unsafe { ([*a.start; WIDTH], [*b.start; WIDTH]) };
    let mut at = 0;
    while at < len {
        let count = WIDTH.min(len - at);
        // SAFETY: `at + count <= len`.
        let (x, y) = unsafe { (a.load(at, count, still_a), b.load(at, count, still_b)) };
        let mut results = [const { MaybeUninit::uninit() }; WIDTH];
        for i in 0..WIDTH {
            results[i].write(f(x[i], y[i]));
        }
        // SAFETY: as above.
        unsafe { store(dst.add(at), count, results) };
        at += count;
    }
}

/// As `pairs`, one by one: for functions that do not vectorise.
///
/// # Safety
/// As for `pairs`.
#[inline(always)]
pub(super) unsafe fn pairs_singly<A: Copy, B: Copy, U>(
    a: Operand<A>,
    b: Operand<B>,
    dst: *mut U,
    len: usize,
    f: impl Fn(A, B) -> U,
) {
    for at in 0..len {
        // SAFETY: in bounds by the caller's promise.
        unsafe { dst.add(at).write(f(a.get(at), b.get(at))) };
    }
}

/// Writes `f(x)` to `dst`, chunk by chunk; `f` is also called for some elements that are not written.
///
/// # Safety
/// Both have `len` elements, and overlap only where elements of one index share their place.
#[inline(always)]
pub(super) unsafe fn map<T: Copy, U>(src: *const T, dst: *mut U, len: usize, f: impl Fn(T) -> U) {
    if len == 0 {
        return;
    }
    let src = Operand { start: src, advances: true };
    // SAFETY: there is at least one element.
    let still = unsafe { [*src.start; WIDTH] };
    let mut at = 0;
    while at < len {
        let count = WIDTH.min(len - at);
        // SAFETY: `at + count <= len`.
        let x = unsafe { src.load(at, count, still) };
        let mut results = [const { MaybeUninit::uninit() }; WIDTH];
        for i in 0..WIDTH {
            results[i].write(f(x[i]));
        }
        // SAFETY: as above.
        unsafe { store(dst.add(at), count, results) };
        at += count;
    }
}

/// As `map`, one by one: for functions that do not vectorise.
///
/// # Safety
/// As for `map`.
#[inline(always)]
pub(super) unsafe fn map_singly<T: Copy, U>(src: *const T, dst: *mut U, len: usize, f: impl Fn(T) -> U) {
    for at in 0..len {
        // SAFETY: in bounds by the caller's promise.
        unsafe { dst.add(at).write(f(*src.add(at))) };
    }
}
