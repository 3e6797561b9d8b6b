//! One compiled loop for each function of one or two elements, whatever way its operands meet.
//!
//! A loop takes a few elements at a time into registers before it writes, so that the result may take the place of an
//! operand, and an operand may stand still. What surrounds the loop (threads, shapes) knows element types but not the
//! function, and is compiled once for all functions.

mod chunk;
mod map;
mod pairs;

pub use map::Map;
pub use pairs::{Meeting, Pairs};

/// Another value of a function that has no state.
fn another<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "a function of elements must not capture anything") };
    // SAFETY: a value of `F` was given to the constructor that named `F`, and a copy of it has no bytes to read.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}
