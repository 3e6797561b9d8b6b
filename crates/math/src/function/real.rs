//! The functions of real numbers, one trait for all float types; 16-bit floats go through `f32`.

use half::{bf16, f16};

use super::half_float::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::number::Ordered;
use super::{bessel, double, gamma, single, special};

macro_rules! real {
    (
        unary { $($(#[$doc:meta])* $unary:ident = $of_f32:expr, $of_f64:expr;)* }
        binary { $($(#[$doc2:meta])* $binary:ident = $of_f32_2:expr, $of_f64_2:expr;)* }
    ) => {
        /// A floating-point number.
        ///
        /// Call these as `T::exp` or `Real::exp`: `f32::exp` is the standard library's, which does not vectorise, and
        /// `f32::round` even has another meaning.
        pub trait Real: Ordered {
            /// From double precision, rounded.
            fn from_f64(x: f64) -> Self;
            /// To double precision.
            fn to_f64(self) -> f64;
            $($(#[$doc])* fn $unary(self) -> Self;)*
            $($(#[$doc2])* fn $binary(self, other: Self) -> Self;)*
        }

        impl Real for f32 {
            #[inline(always)]
            fn from_f64(x: f64) -> f32 {
                x as f32
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            $(#[inline(always)] fn $unary(self) -> f32 { $of_f32(self) })*
            $(#[inline(always)] fn $binary(self, other: f32) -> f32 { $of_f32_2(self, other) })*
        }

        impl Real for f64 {
            #[inline(always)]
            fn from_f64(x: f64) -> f64 {
                x
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self
            }

            $(#[inline(always)] fn $unary(self) -> f64 { $of_f64(self) })*
            $(#[inline(always)] fn $binary(self, other: f64) -> f64 { $of_f64_2(self, other) })*
        }

        impl Real for f16 {
            #[inline(always)]
            fn from_f64(x: f64) -> f16 {
                f16::from_f64(x)
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(f16_to_f32(self))
            }

            $(#[inline(always)] fn $unary(self) -> f16 { f32_to_f16($of_f32(f16_to_f32(self))) })*
            $(#[inline(always)] fn $binary(self, other: f16) -> f16 {
                f32_to_f16($of_f32_2(f16_to_f32(self), f16_to_f32(other)))
            })*
        }

        impl Real for bf16 {
            #[inline(always)]
            fn from_f64(x: f64) -> bf16 {
                bf16::from_f64(x)
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(bf16_to_f32(self))
            }

            $(#[inline(always)] fn $unary(self) -> bf16 { f32_to_bf16($of_f32(bf16_to_f32(self))) })*
            $(#[inline(always)] fn $binary(self, other: bf16) -> bf16 {
                f32_to_bf16($of_f32_2(bf16_to_f32(self), bf16_to_f32(other)))
            })*
        }
    };
}

/// The incomplete beta function, divided by the complete one.
pub fn betainc<T: Real>(a: T, b: T, x: T) -> T {
    T::from_f64(gamma::betainc(a.to_f64(), b.to_f64(), x.to_f64()))
}

/// A function of two `f64`, for `f32`.
macro_rules! wide2 {
    ($f:path) => {
        |x: f32, y: f32| $f(f64::from(x), f64::from(y)) as f32
    };
}

/// A function of one `f64`, for `f32`.
macro_rules! wide {
    ($f:path) => {
        |x: f32| $f(f64::from(x)) as f32
    };
}

real! {
    unary {
        /// The exponential function.
        exp = single::exp, f64::exp;
        /// `exp(x) - 1`.
        expm1 = single::expm1, f64::exp_m1;
        /// The natural logarithm.
        log = single::log, f64::ln;
        /// `log(1 + x)`.
        log1p = single::log1p, f64::ln_1p;
        /// The sine.
        sin = single::sin, f64::sin;
        /// The cosine.
        cos = single::cos, f64::cos;
        /// The tangent.
        tan = f32::tan, f64::tan;
        /// The inverse sine.
        asin = f32::asin, f64::asin;
        /// The inverse cosine.
        acos = f32::acos, f64::acos;
        /// The inverse tangent.
        atan = f32::atan, f64::atan;
        /// The hyperbolic sine.
        sinh = f32::sinh, f64::sinh;
        /// The hyperbolic cosine.
        cosh = f32::cosh, f64::cosh;
        /// The hyperbolic tangent.
        tanh = single::tanh, f64::tanh;
        /// The inverse hyperbolic sine.
        asinh = wide!(libm::asinh), libm::asinh;
        /// The inverse hyperbolic cosine.
        acosh = wide!(libm::acosh), libm::acosh;
        /// The inverse hyperbolic tangent.
        atanh = wide!(libm::atanh), libm::atanh;
        /// The square root.
        sqrt = f32::sqrt, f64::sqrt;
        /// One over the square root.
        rsqrt = single::rsqrt, double::rsqrt;
        /// One over `x`.
        reciprocal = |x: f32| 1.0 / x, |x: f64| 1.0 / x;
        /// `1 / (1 + exp(-x))`.
        sigmoid = single::sigmoid, double::sigmoid;
        /// `log(1 + exp(x))`.
        softplus = single::softplus, double::softplus;
        /// `x / (1 + |x|)`.
        softsign = |x: f32| x / (1.0 + x.abs()), |x: f64| x / (1.0 + x.abs());
        /// `exp(x) - 1` below zero, `x` above.
        elu = single::elu, double::elu;
        /// The scaled exponential linear unit.
        selu = single::selu, double::selu;
        /// The error function.
        erf = single::erf, libm::erf;
        /// One minus the error function.
        erfc = single::erfc, libm::erfc;
        /// The logarithm of the absolute value of the gamma function.
        lgamma = wide!(double::lgamma), double::lgamma;
        /// The logarithmic derivative of the gamma function.
        digamma = wide!(gamma::digamma), gamma::digamma;
        /// The number whose error function is `x`.
        erfinv = wide!(special::erfinv), special::erfinv;
        /// The number below which a standard normal one lies with probability `x`.
        ndtri = wide!(special::ndtri), special::ndtri;
        /// Dawson's integral.
        dawsn = wide!(special::dawsn), special::dawsn;
        /// The exponential integral.
        expint = wide!(special::expint), special::expint;
        /// Fresnel's integral of the cosine.
        fresnel_cos = wide!(special::fresnel_cos), special::fresnel_cos;
        /// Fresnel's integral of the sine.
        fresnel_sin = wide!(special::fresnel_sin), special::fresnel_sin;
        /// Spence's integral.
        spence = wide!(special::spence), special::spence;
        /// The Bessel function of the first kind of order zero.
        bessel_j0 = wide!(libm::j0), libm::j0;
        /// The Bessel function of the first kind of order one.
        bessel_j1 = wide!(libm::j1), libm::j1;
        /// The Bessel function of the second kind of order zero.
        bessel_y0 = wide!(bessel::y0), bessel::y0;
        /// The Bessel function of the second kind of order one.
        bessel_y1 = wide!(bessel::y1), bessel::y1;
        /// The modified Bessel function of the first kind of order zero.
        bessel_i0 = wide!(bessel::i0), bessel::i0;
        /// `exp(-|x|)` times the modified Bessel function of the first kind of order zero.
        bessel_i0e = wide!(bessel::i0e), bessel::i0e;
        /// The modified Bessel function of the first kind of order one.
        bessel_i1 = wide!(bessel::i1), bessel::i1;
        /// `exp(-|x|)` times the modified Bessel function of the first kind of order one.
        bessel_i1e = wide!(bessel::i1e), bessel::i1e;
        /// The modified Bessel function of the second kind of order zero.
        bessel_k0 = wide!(bessel::k0), bessel::k0;
        /// `exp(x)` times the modified Bessel function of the second kind of order zero.
        bessel_k0e = wide!(bessel::k0e), bessel::k0e;
        /// The modified Bessel function of the second kind of order one.
        bessel_k1 = wide!(bessel::k1), bessel::k1;
        /// `exp(x)` times the modified Bessel function of the second kind of order one.
        bessel_k1e = wide!(bessel::k1e), bessel::k1e;
        /// The largest whole number not above `x`.
        floor = f32::floor, f64::floor;
        /// The smallest whole number not below `x`.
        ceil = f32::ceil, f64::ceil;
        /// The nearest whole number, ties to even.
        round = f32::round_ties_even, f64::round_ties_even;
    }
    binary {
        /// `self` to the power `other`.
        pow = f32::powf, f64::powf;
        /// The angle of the point with ordinate `self` and abscissa `other`.
        atan2 = f32::atan2, f64::atan2;
        /// The neighbour of `self` in the direction of `other`.
        next_after = libm::nextafterf, libm::nextafter;
        /// `self log(other)`, and zero where `self` is zero.
        xlogy = |x: f32, y: f32| if x == 0.0 { 0.0 } else { x * single::log(y) },
            |x: f64, y: f64| if x == 0.0 { 0.0 } else { x * y.ln() };
        /// `self log(1 + other)`, and zero where `self` is zero.
        xlog1py = |x: f32, y: f32| if x == 0.0 { 0.0 } else { x * single::log1p(y) },
            |x: f64, y: f64| if x == 0.0 { 0.0 } else { x * y.ln_1p() };
        /// The lower incomplete gamma function of order `self`, divided by the complete one.
        igamma = wide2!(gamma::igamma), gamma::igamma;
        /// The upper incomplete gamma function of order `self`, divided by the complete one.
        igammac = wide2!(gamma::igammac), gamma::igammac;
        /// The derivative of `igamma` by its order.
        igamma_grad_a = wide2!(gamma::igamma_grad_a), gamma::igamma_grad_a;
        /// The Hurwitz zeta function of exponent `self`.
        zeta = wide2!(gamma::zeta), gamma::zeta;
        /// The derivative of order `self` of `digamma`.
        polygamma = wide2!(gamma::polygamma), gamma::polygamma;
    }
}
