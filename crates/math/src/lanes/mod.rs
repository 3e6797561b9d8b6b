//! One compiled loop per function of one or two elements, shared by all ways its operands can be laid out.
//!
//! A loop loads a few elements into registers before it writes, so that the result may overwrite an operand, and an
//! operand may be a broadcast scalar. The code around the loop (threads, shapes) is generic over element types but
//! not over the function, so it is compiled once for all functions.

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
