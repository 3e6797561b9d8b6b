//! Discrete Fourier transforms along one axis, of complex and of real numbers.

mod axis;
mod plans;
mod real;
mod rows;

pub use axis::along;
pub use plans::{Direction, Plans};
pub use real::{each_row, forward_rows, inverse_rows};
pub use rows::{Rows, fit};

/// A real number whose transforms are computed.
pub trait Real: realfft::FftNum + Default {
    /// From double precision, rounded.
    fn of(value: f64) -> Self;
}

impl Real for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }
}

impl Real for f64 {
    fn of(value: f64) -> f64 {
        value
    }
}

/// About how many nanoseconds the transform of a row takes.
fn cost(len: usize) -> f32 {
    let len = len as f32;
    len * (len.log2() + 2.0) * 0.5
}
