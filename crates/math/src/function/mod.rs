//! Elementary functions, as a graph means them; those of `f32` vectorise.

mod bessel;
mod double;
mod gamma;
mod half_float;
mod number;
mod real;
mod single;
mod special;

pub use half_float::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
pub use number::{Number, Ordered};
pub use real::{Real, betainc};
pub use single::{FAST_ANGLE_LIMIT, cos_fast, sin_fast};
