//! Which numbers can be pooled.

use half::{bf16, f16};

/// A number of which the largest can be taken.
pub trait Pooled: Copy + PartialOrd + Send + Sync + 'static {
    /// The smallest finite value, which an empty window gives.
    const LOWEST: Self;
    /// Zero.
    const ZERO: Self;

    /// The sum.
    fn plus(self, other: Self) -> Self;
}

/// A number of which a mean can be taken.
pub trait Averaged: Pooled {
    /// The type in which sums are made.
    type Wide: Copy + Send + Sync + std::ops::Add<Output = Self::Wide> + std::ops::Mul<Output = Self::Wide>;
    /// The sum of nothing.
    const NONE: Self::Wide;

    /// The same value.
    fn widen(self) -> Self::Wide;
    /// A sum as the nearest value.
    fn narrow(sum: Self::Wide) -> Self;
    /// `sum / count`.
    fn divide(sum: Self::Wide, count: usize) -> Self;
    /// `1 / count`.
    fn share(count: usize) -> Self::Wide;
}

macro_rules! float {
    ($($type:ty)*) => {$(
        impl Pooled for $type {
            const LOWEST: Self = <$type>::MIN;
            const ZERO: Self = 0.0;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
        }

        impl Averaged for $type {
            type Wide = $type;
            const NONE: $type = 0.0;

            #[inline(always)]
            fn widen(self) -> $type {
                self
            }

            #[inline(always)]
            fn narrow(sum: $type) -> $type {
                sum
            }

            #[inline(always)]
            fn divide(sum: $type, count: usize) -> $type {
                sum / count as $type
            }

            #[inline(always)]
            fn share(count: usize) -> $type {
                (1.0 / count as f64) as $type
            }
        }
    )*};
}

float!(f32 f64);

macro_rules! half_float {
    ($($type:ty)*) => {$(
        impl Pooled for $type {
            const LOWEST: Self = <$type>::MIN;
            const ZERO: Self = <$type>::ZERO;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
        }

        impl Averaged for $type {
            type Wide = f32;
            const NONE: f32 = 0.0;

            #[inline(always)]
            fn widen(self) -> f32 {
                self.to_f32()
            }

            #[inline(always)]
            fn narrow(sum: f32) -> Self {
                Self::from_f32(sum)
            }

            #[inline(always)]
            fn divide(sum: f32, count: usize) -> Self {
                Self::from_f32(sum / count as f32)
            }

            #[inline(always)]
            fn share(count: usize) -> f32 {
                1.0 / count as f32
            }
        }
    )*};
}

half_float!(f16 bf16);

macro_rules! integer {
    ($($type:ty)*) => {$(
        impl Pooled for $type {
            const LOWEST: Self = <$type>::MIN;
            const ZERO: Self = 0;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    )*};
}

integer!(i8 i16 i32 i64 u8 u16 u32 u64);
