//! Numbers of which images are made.

use tensor::{Element, bf16, f16};

/// A channel of a pixel.
pub(crate) trait Pixel: Element {
    /// As float; wide integers are rounded.
    fn to_f32(self) -> f32;
    /// From float; integers are cut towards zero and kept in range.
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
