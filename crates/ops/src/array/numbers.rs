//! The operations on numbers that kernels of this crate need beyond arithmetic.

use math::function::{Number, Ordered};
use tensor::{Complex32, Complex64, DType, Element};

/// A number that can be a count.
pub(crate) trait Summed: Element + Number {
    /// Converts a count.
    fn of_count(count: usize) -> Self;

    /// The complex conjugate; a real number is its own conjugate.
    #[inline(always)]
    fn conjugate(self) -> Self {
        self
    }
}

macro_rules! summed {
    ($($t:ty, $count:expr $(, $conjugate:expr)?;)*) => {$(
        impl Summed for $t {
            fn of_count(count: usize) -> $t {
                $count(count)
            }

            $(#[inline(always)]
            fn conjugate(self) -> $t {
                $conjugate(self)
            })?
        }
    )*};
}

summed! {
    f32, |n| n as f32;
    f64, |n| n as f64;
    i32, |n| n as i32;
    i64, |n| n as i64;
    u64, |n| n as u64;
    Complex32, |n| Complex32::new(n as f32, 0.0), |z: Complex32| z.conj();
    Complex64, |n| Complex64::new(n as f64, 0.0), |z: Complex64| z.conj();
}

/// A number that holds the finite ends of narrower types too.
pub(crate) trait Bounded: Element + Ordered {
    /// The lowest and the highest finite value of a type.
    fn ends(dtype: DType) -> (Self, Self);
}

macro_rules! bounded {
    ($($t:ty: [$($dtype:ident: $narrow:ty),*];)*) => {$(
        impl Bounded for $t {
            fn ends(dtype: DType) -> ($t, $t) {
                match dtype {
                    $(DType::$dtype => (<$narrow>::MIN.into(), <$narrow>::MAX.into()),)*
                    _ => (<$t>::MIN, <$t>::MAX),
                }
            }
        }
    )*};
}

bounded! {
    f32: [F16: tensor::f16, BF16: tensor::bf16];
    f64: [];
    i32: [I8: i8, I16: i16, U8: u8, U16: u16];
    i64: [U32: u32];
    u64: [];
}
