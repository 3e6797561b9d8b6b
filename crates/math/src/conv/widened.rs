//! Convolutions of half floats, computed in f32.

use super::{ConvShape, forward, grad_filter, grad_input};
use crate::Pool;
use crate::gemm::Epilogue;
use half::{bf16, f16};

/// A number that is computed with as f32.
pub trait HalfFloat: Copy + Send + Sync {
    /// The same value.
    fn widen(self) -> f32;
    /// The nearest value.
    fn narrow(wide: f32) -> Self;
}

macro_rules! half_float {
    ($($type:ty)*) => {$(
        impl HalfFloat for $type {
            fn widen(self) -> f32 {
                self.to_f32()
            }

            fn narrow(wide: f32) -> Self {
                Self::from_f32(wide)
            }
        }
    )*};
}

half_float!(f16 bf16);

/// As `forward`, for half floats.
pub fn half_forward<T: HalfFloat>(pool: &Pool, shape: &ConvShape, input: &[T], filter: &[T], out: &mut [T]) {
    through_f32(input, filter, out, |input, filter, out| forward(pool, shape, input, filter, Epilogue::NONE, out));
}

/// As `grad_input`, for half floats.
pub fn half_grad_input<T: HalfFloat>(pool: &Pool, shape: &ConvShape, filter: &[T], grad: &[T], out: &mut [T]) {
    through_f32(filter, grad, out, |filter, grad, out| grad_input(pool, shape, filter, grad, out));
}

/// As `grad_filter`, for half floats.
pub fn half_grad_filter<T: HalfFloat>(pool: &Pool, shape: &ConvShape, input: &[T], grad: &[T], out: &mut [T]) {
    through_f32(input, grad, out, |input, grad, out| grad_filter(pool, shape, input, grad, out));
}

/// Widens two inputs, calls `body`, narrows its result.
pub(super) fn through_f32<T: HalfFloat>(
    a: &[T],
    b: &[T],
    out: &mut [T],
    body: impl FnOnce(&[f32], &[f32], &mut [f32]),
) {
    let wide = |values: &[T]| values.iter().map(|x| x.widen()).collect::<Vec<f32>>();
    let mut result = vec![0.0; out.len()];
    body(&wide(a), &wide(b), &mut result);
    out.iter_mut().zip(&result).for_each(|(out, &x)| *out = T::narrow(x));
}
