//! What reductions over segments ask of numbers beyond arithmetic.

use math::function::{Number, Ordered};
use tensor::{Complex32, Complex64, Element, bf16, f16};

/// A number that can be a count, and that is summed in a wider one where its own width loses too much.
pub(crate) trait Summed: Element + Number {
    /// What sums are kept in.
    type Wide: Element + Number;
    /// So many.
    fn of_count(count: usize) -> Self::Wide;
    /// Wider.
    fn widen(self) -> Self::Wide;
    /// Narrower, rounded.
    fn narrow(wide: Self::Wide) -> Self;

    /// With the sign of the imaginary part changed, if there is one.
    #[inline(always)]
    fn conjugate(self) -> Self {
        self
    }
}

/// A number that has finite ends.
pub(crate) trait Bounded: Element + Ordered {
    /// The lowest finite value.
    const LOW: Self;
    /// The highest finite value.
    const HIGH: Self;
}

macro_rules! own_width {
    ($($t:ty, $count:expr $(, $conjugate:expr)?;)*) => {$(
        impl Summed for $t {
            type Wide = $t;

            fn of_count(count: usize) -> $t {
                $count(count)
            }

            #[inline(always)]
            fn widen(self) -> $t {
                self
            }

            #[inline(always)]
            fn narrow(wide: $t) -> $t {
                wide
            }

            $(#[inline(always)]
            fn conjugate(self) -> $t {
                $conjugate(self)
            })?
        }
    )*};
}

own_width! {
    f32, |n| n as f32;
    f64, |n| n as f64;
    i8, |n| n as i8;
    i16, |n| n as i16;
    i32, |n| n as i32;
    i64, |n| n as i64;
    u8, |n| n as u8;
    u16, |n| n as u16;
    u32, |n| n as u32;
    u64, |n| n as u64;
    Complex32, |n| Complex32::new(n as f32, 0.0), |z: Complex32| z.conj();
    Complex64, |n| Complex64::new(n as f64, 0.0), |z: Complex64| z.conj();
}

macro_rules! half_width {
    ($($t:ty, $widen:path, $narrow:path;)*) => {$(
        impl Summed for $t {
            type Wide = f32;

            fn of_count(count: usize) -> f32 {
                count as f32
            }

            #[inline(always)]
            fn widen(self) -> f32 {
                $widen(self)
            }

            #[inline(always)]
            fn narrow(wide: f32) -> $t {
                $narrow(wide)
            }
        }
    )*};
}

half_width! {
    f16, math::function::f16_to_f32, math::function::f32_to_f16;
    bf16, math::function::bf16_to_f32, math::function::f32_to_bf16;
}

macro_rules! bounded {
    ($($t:ty),*) => {$(
        impl Bounded for $t {
            const LOW: $t = <$t>::MIN;
            const HIGH: $t = <$t>::MAX;
        }
    )*};
}

bounded!(f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64);
