//! Elementary functions of `f64` that the standard library does not have.

/// `1 / (1 + exp(-x))`.
#[inline]
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `log(1 + exp(x))`, without overflow for large `x`.
#[inline]
pub fn softplus(x: f64) -> f64 {
    // Beyond this distance from zero the rounded result is `x`, or `exp(x)`.
    const FAR: f64 = 34.043_653_389_117_16;
    if x > FAR {
        x
    } else if x < -FAR {
        x.exp()
    } else {
        x.exp().ln_1p()
    }
}

/// `exp(x) - 1` below zero, `x` above.
#[inline]
pub fn elu(x: f64) -> f64 {
    if x < 0.0 { x.exp_m1() } else { x }
}

/// The scaled exponential linear unit.
#[inline]
pub fn selu(x: f64) -> f64 {
    const SCALE: f64 = 1.050_700_987_355_480_5;
    const SCALE_ALPHA: f64 = 1.758_099_340_847_376_6;
    if x < 0.0 { SCALE_ALPHA * x.exp_m1() } else { SCALE * x }
}

/// One over the square root.
#[inline(always)]
pub fn rsqrt(x: f64) -> f64 {
    1.0 / x.sqrt()
}

/// The logarithm of the absolute value of the gamma function.
#[inline]
pub fn lgamma(x: f64) -> f64 {
    if x == f64::NEG_INFINITY { f64::INFINITY } else { libm::lgamma(x) }
}
