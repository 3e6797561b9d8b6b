//! Arithmetic that all kinds of numbers share, with the meaning it has in a graph: integers wrap around.

use half::{bf16, f16};
use num_complex::Complex;

use super::half_float::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::elementwise::Element;

/// A number, real or complex.
pub trait Number: Element + PartialEq + 'static {
    /// The additive identity.
    const ZERO: Self;
    /// The multiplicative identity.
    const ONE: Self;

    /// The sum.
    fn add(self, other: Self) -> Self;
    /// The difference.
    fn sub(self, other: Self) -> Self;
    /// The product.
    fn mul(self, other: Self) -> Self;
    /// The quotient; of integers, cut towards zero. An integer divisor is not zero.
    fn div(self, other: Self) -> Self;
    /// The negative.
    fn neg(self) -> Self;
    /// The difference times itself; of complex numbers, times its conjugate.
    fn squared_difference(self, other: Self) -> Self;

    /// The number times itself.
    #[inline(always)]
    fn square(self) -> Self {
        self.mul(self)
    }

    /// The quotient, and zero where the divisor is zero.
    #[inline(always)]
    fn div_no_nan(self, other: Self) -> Self {
        if other == Self::ZERO { Self::ZERO } else { self.div(other) }
    }

    /// The product, and zero where `other` is zero, whatever `self` is.
    #[inline(always)]
    fn mul_no_nan(self, other: Self) -> Self {
        if other == Self::ZERO { Self::ZERO } else { self.mul(other) }
    }

    /// The quotient, and zero where the dividend is zero.
    #[inline(always)]
    fn xdivy(self, other: Self) -> Self {
        if self == Self::ZERO { Self::ZERO } else { self.div(other) }
    }
}

/// A number that has an order.
pub trait Ordered: Number + PartialOrd {
    /// The lowest value; minus infinity where there is one.
    const LOWEST: Self;
    /// The highest value; infinity where there is one.
    const HIGHEST: Self;

    /// The larger one; not-a-number if either is.
    fn larger(self, other: Self) -> Self;
    /// The smaller one; not-a-number if either is.
    fn smaller(self, other: Self) -> Self;
    /// The distance from zero.
    fn absolute(self) -> Self;
    /// The largest whole number not above the quotient. An integer divisor is not zero.
    fn floor_div(self, other: Self) -> Self;
    /// What `floor_div` leaves; it has the sign of the divisor.
    fn floor_mod(self, other: Self) -> Self;
    /// The quotient cut towards zero. An integer divisor is not zero.
    fn truncate_div(self, other: Self) -> Self;
    /// What `truncate_div` leaves; it has the sign of the dividend.
    fn truncate_mod(self, other: Self) -> Self;

    /// False for not-a-number.
    #[inline(always)]
    fn is_number(self) -> bool {
        self.partial_cmp(&self).is_some()
    }

    /// One, zero or minus one; not-a-number stays.
    #[inline(always)]
    fn sign(self) -> Self {
        let negative = if self < Self::ZERO { Self::ZERO.sub(Self::ONE) } else { self.sub(self) };
        if self > Self::ZERO { Self::ONE } else { negative }
    }
}

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const ZERO: $t = 0;
            const ONE: $t = 1;

            #[inline(always)]
            fn add(self, other: $t) -> $t {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn sub(self, other: $t) -> $t {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn mul(self, other: $t) -> $t {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn div(self, other: $t) -> $t {
                self.wrapping_div(other)
            }

            #[inline(always)]
            fn neg(self) -> $t {
                self.wrapping_neg()
            }

            #[inline(always)]
            fn squared_difference(self, other: $t) -> $t {
                self.wrapping_sub(other).square()
            }
        }

        impl Ordered for $t {
            const LOWEST: $t = <$t>::MIN;
            const HIGHEST: $t = <$t>::MAX;

            #[inline(always)]
            fn larger(self, other: $t) -> $t {
                if self > other { self } else { other }
            }

            #[inline(always)]
            fn smaller(self, other: $t) -> $t {
                if self < other { self } else { other }
            }

            #[inline(always)]
            #[allow(unused_comparisons)]
            fn absolute(self) -> $t {
                if self < 0 { self.wrapping_neg() } else { self }
            }

            #[inline(always)]
            #[allow(unused_comparisons)]
            fn floor_div(self, other: $t) -> $t {
                let quotient = self.wrapping_div(other);
                let rest = self.wrapping_rem(other);
                if rest != 0 && (rest < 0) != (other < 0) { quotient.wrapping_sub(1) } else { quotient }
            }

            #[inline(always)]
            #[allow(unused_comparisons)]
            fn floor_mod(self, other: $t) -> $t {
                let rest = self.wrapping_rem(other);
                if rest != 0 && (rest < 0) != (other < 0) { rest.wrapping_add(other) } else { rest }
            }

            #[inline(always)]
            fn truncate_div(self, other: $t) -> $t {
                self.wrapping_div(other)
            }

            #[inline(always)]
            fn truncate_mod(self, other: $t) -> $t {
                self.wrapping_rem(other)
            }
        }
    )*};
}

integer!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;

            #[inline(always)]
            fn add(self, other: $t) -> $t {
                self + other
            }

            #[inline(always)]
            fn sub(self, other: $t) -> $t {
                self - other
            }

            #[inline(always)]
            fn mul(self, other: $t) -> $t {
                self * other
            }

            #[inline(always)]
            fn div(self, other: $t) -> $t {
                self / other
            }

            #[inline(always)]
            fn neg(self) -> $t {
                -self
            }

            #[inline(always)]
            fn squared_difference(self, other: $t) -> $t {
                (self - other) * (self - other)
            }
        }

        impl Ordered for $t {
            const LOWEST: $t = <$t>::NEG_INFINITY;
            const HIGHEST: $t = <$t>::INFINITY;

            #[inline(always)]
            fn larger(self, other: $t) -> $t {
                let larger = if self > other { self } else { other };
                if self.is_nan() { self } else { larger }
            }

            #[inline(always)]
            fn smaller(self, other: $t) -> $t {
                let smaller = if self < other { self } else { other };
                if self.is_nan() { self } else { smaller }
            }

            #[inline(always)]
            fn absolute(self) -> $t {
                self.abs()
            }

            #[inline(always)]
            fn floor_div(self, other: $t) -> $t {
                (self / other).floor()
            }

            #[inline(always)]
            fn floor_mod(self, other: $t) -> $t {
                let rest = self % other;
                if rest != 0.0 && (rest < 0.0) != (other < 0.0) { rest + other } else { rest }
            }

            #[inline(always)]
            fn truncate_div(self, other: $t) -> $t {
                (self / other).trunc()
            }

            #[inline(always)]
            fn truncate_mod(self, other: $t) -> $t {
                self % other
            }
        }
    )*};
}

float!(f32, f64);

macro_rules! small_float {
    ($t:ty, $widen:ident, $narrow:ident) => {
        impl Number for $t {
            const ZERO: $t = <$t>::ZERO;
            const ONE: $t = <$t>::ONE;

            #[inline(always)]
            fn add(self, other: $t) -> $t {
                $narrow($widen(self) + $widen(other))
            }

            #[inline(always)]
            fn sub(self, other: $t) -> $t {
                $narrow($widen(self) - $widen(other))
            }

            #[inline(always)]
            fn mul(self, other: $t) -> $t {
                $narrow($widen(self) * $widen(other))
            }

            #[inline(always)]
            fn div(self, other: $t) -> $t {
                $narrow($widen(self) / $widen(other))
            }

            #[inline(always)]
            fn neg(self) -> $t {
                <$t>::from_bits(self.to_bits() ^ 0x8000)
            }

            #[inline(always)]
            fn squared_difference(self, other: $t) -> $t {
                self.sub(other).square()
            }
        }

        impl Ordered for $t {
            const LOWEST: $t = <$t>::NEG_INFINITY;
            const HIGHEST: $t = <$t>::INFINITY;

            #[inline(always)]
            fn larger(self, other: $t) -> $t {
                $narrow($widen(self).larger($widen(other)))
            }

            #[inline(always)]
            fn smaller(self, other: $t) -> $t {
                $narrow($widen(self).smaller($widen(other)))
            }

            #[inline(always)]
            fn absolute(self) -> $t {
                <$t>::from_bits(self.to_bits() & 0x7fff)
            }

            #[inline(always)]
            fn floor_div(self, other: $t) -> $t {
                $narrow($widen(self.div(other)).floor())
            }

            #[inline(always)]
            fn floor_mod(self, other: $t) -> $t {
                $narrow($widen(self).floor_mod($widen(other)))
            }

            #[inline(always)]
            fn truncate_div(self, other: $t) -> $t {
                $narrow($widen(self.div(other)).trunc())
            }

            #[inline(always)]
            fn truncate_mod(self, other: $t) -> $t {
                $narrow($widen(self) % $widen(other))
            }
        }
    };
}

small_float!(f16, f16_to_f32, f32_to_f16);
small_float!(bf16, bf16_to_f32, f32_to_bf16);

macro_rules! complex {
    ($($t:ty),*) => {$(
        impl Number for Complex<$t> {
            const ZERO: Complex<$t> = Complex { re: 0.0, im: 0.0 };
            const ONE: Complex<$t> = Complex { re: 1.0, im: 0.0 };

            #[inline(always)]
            fn add(self, other: Complex<$t>) -> Complex<$t> {
                self + other
            }

            #[inline(always)]
            fn sub(self, other: Complex<$t>) -> Complex<$t> {
                self - other
            }

            #[inline(always)]
            fn mul(self, other: Complex<$t>) -> Complex<$t> {
                self * other
            }

            #[inline(always)]
            fn div(self, other: Complex<$t>) -> Complex<$t> {
                self / other
            }

            #[inline(always)]
            fn neg(self) -> Complex<$t> {
                -self
            }

            #[inline(always)]
            fn squared_difference(self, other: Complex<$t>) -> Complex<$t> {
                let difference = self - other;
                difference * difference.conj()
            }

            // Zero stays zero even where the square of the divisor's modulus is too small for a number.
            #[inline(always)]
            fn div_no_nan(self, other: Complex<$t>) -> Complex<$t> {
                if other == Self::ZERO || self * other.conj() == Self::ZERO { Self::ZERO } else { self / other }
            }
        }
    )*};
}

complex!(f32, f64);
