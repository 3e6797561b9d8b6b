//! Converts real numbers of any type to the doubles and floats in summaries.

use tensor::{Element, bf16, f16};

/// A number that can be summarized.
pub(super) trait Real: Element {
    /// Converts to a double.
    fn wide(self) -> f64;

    /// Converts to a float, rounded once.
    fn narrow(self) -> f32;
}

macro_rules! reals {
    ($($rust:ty),*) => {$(
        impl Real for $rust {
            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn narrow(self) -> f32 {
                self as f32
            }
        }
    )*};
}

reals!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! short {
    ($($rust:ty),*) => {$(
        impl Real for $rust {
            #[inline(always)]
            fn wide(self) -> f64 {
                self.to_f64()
            }

            #[inline(always)]
            fn narrow(self) -> f32 {
                self.to_f32()
            }
        }
    )*};
}

short!(f16, bf16);

impl Real for bool {
    fn wide(self) -> f64 {
        f64::from(u8::from(self))
    }

    fn narrow(self) -> f32 {
        f32::from(u8::from(self))
    }
}
