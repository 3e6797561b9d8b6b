//! The number types of images.

use std::ops::{AddAssign, Mul};
use tensor::{Element, bf16, f16};

/// A channel of a pixel.
pub(crate) trait Pixel: Element {
    /// Converts to float; wide integers are rounded.
    fn to_f32(self) -> f32;
    /// Converts from float; integers are truncated towards zero and clipped to their range.
    fn from_f32(x: f32) -> Self;
}

macro_rules! plain {
    ($($t:ty),*) => {$(
        impl Pixel for $t {
            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }

            #[inline(always)]
            fn from_f32(x: f32) -> $t {
                x as $t
            }
        }
    )*};
}

plain!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! half_float {
    ($($t:ty),*) => {$(
        impl Pixel for $t {
            #[inline(always)]
            fn to_f32(self) -> f32 {
                <$t>::to_f32(self)
            }

            #[inline(always)]
            fn from_f32(x: f32) -> $t {
                <$t>::from_f32(x)
            }
        }
    )*};
}

half_float!(f16, bf16);

/// A floating channel, of which many are added up.
pub(crate) trait Summed: Pixel {
    /// The type of sums: at least float.
    type Sum: Element + AddAssign + Mul<Output = Self::Sum> + From<f32>;
    /// The sum as a channel.
    fn of_sum(sum: Self::Sum) -> Self;
}

macro_rules! summed {
    ($($t:ty: $sum:ty = $of_sum:expr;)*) => {$(
        impl Summed for $t {
            type Sum = $sum;

            #[inline(always)]
            fn of_sum(sum: $sum) -> $t {
                $of_sum(sum)
            }
        }
    )*};
}

summed! {
    f32: f32 = std::convert::identity;
    f64: f64 = std::convert::identity;
    f16: f32 = f16::from_f32;
    bf16: f32 = bf16::from_f32;
}
