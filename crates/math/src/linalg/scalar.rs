//! The numbers matrices are made of: real or complex, of two widths.

use crate::gemm;
use num_complex::Complex;
use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number of a field, real or complex.
pub trait Scalar:
    gemm::Element
    + PartialEq
    + Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Its distances.
    type Real: RealScalar;
    /// The unit.
    const ONE: Self;

    /// From a real number.
    fn from_real(real: Self::Real) -> Self;
    /// The real part.
    fn real(self) -> Self::Real;
    /// With the sign of the imaginary part changed.
    fn conjugate(self) -> Self;
    /// The square of the distance from zero.
    fn modulus_squared(self) -> Self::Real;
    /// Times a real number.
    fn scale(self, factor: Self::Real) -> Self;
    /// As a complex number of double precision.
    fn to_complex(self) -> Complex<f64>;
    /// From a complex number of double precision; the imaginary part is dropped where there is none.
    fn from_complex(value: Complex<f64>) -> Self;

    /// The distance from zero.
    fn modulus(self) -> Self::Real {
        self.modulus_squared().root()
    }
}

/// A real number.
pub trait RealScalar: Scalar<Real = Self> + PartialOrd {
    /// The distance from one to the next number.
    const EPSILON: Self;
    /// The square root.
    fn root(self) -> Self;
    /// The distance from zero.
    fn magnitude(self) -> Self;
    /// The square root of the sum of squares, without overflow.
    fn diagonal(self, other: Self) -> Self;
    /// From double precision, rounded.
    fn of(value: f64) -> Self;
    /// To double precision.
    fn wide(self) -> f64;
    /// Whether it is neither infinite nor not-a-number.
    fn finite(self) -> bool;

    /// `self` with the sign of `other`.
    fn with_sign(self, other: Self) -> Self {
        let magnitude = self.magnitude();
        if other < Self::default() { -magnitude } else { magnitude }
    }
}

macro_rules! scalars {
    ($($t:ty),*) => {$(
        impl Scalar for $t {
            type Real = $t;
            const ONE: $t = 1.0;

            #[inline(always)]
            fn from_real(real: $t) -> $t {
                real
            }

            #[inline(always)]
            fn real(self) -> $t {
                self
            }

            #[inline(always)]
            fn conjugate(self) -> $t {
                self
            }

            #[inline(always)]
            fn modulus_squared(self) -> $t {
                self * self
            }

            #[inline(always)]
            fn modulus(self) -> $t {
                self.abs()
            }

            #[inline(always)]
            fn scale(self, factor: $t) -> $t {
                self * factor
            }

            fn to_complex(self) -> Complex<f64> {
                Complex::new(self.into(), 0.0)
            }

            fn from_complex(value: Complex<f64>) -> $t {
                value.re as $t
            }
        }

        impl RealScalar for $t {
            const EPSILON: $t = <$t>::EPSILON;

            fn root(self) -> $t {
                self.sqrt()
            }

            fn magnitude(self) -> $t {
                self.abs()
            }

            fn diagonal(self, other: $t) -> $t {
                self.hypot(other)
            }

            fn of(value: f64) -> $t {
                value as $t
            }

            fn wide(self) -> f64 {
                self.into()
            }

            fn finite(self) -> bool {
                self.is_finite()
            }
        }

        impl Scalar for Complex<$t> {
            type Real = $t;
            const ONE: Complex<$t> = Complex { re: 1.0, im: 0.0 };

            #[inline(always)]
            fn from_real(real: $t) -> Complex<$t> {
                Complex::new(real, 0.0)
            }

            #[inline(always)]
            fn real(self) -> $t {
                self.re
            }

            #[inline(always)]
            fn conjugate(self) -> Complex<$t> {
                self.conj()
            }

            #[inline(always)]
            fn modulus_squared(self) -> $t {
                self.norm_sqr()
            }

            #[inline(always)]
            fn modulus(self) -> $t {
                self.norm()
            }

            #[inline(always)]
            fn scale(self, factor: $t) -> Complex<$t> {
                Complex::new(self.re * factor, self.im * factor)
            }

            fn to_complex(self) -> Complex<f64> {
                Complex::new(self.re.into(), self.im.into())
            }

            fn from_complex(value: Complex<f64>) -> Complex<$t> {
                Complex::new(value.re as $t, value.im as $t)
            }
        }
    )*};
}

scalars!(f32, f64);
