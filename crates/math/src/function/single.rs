//! Elementary functions of `f32`: no branches, so that a loop over them becomes a loop over vectors.
//!
//! The coefficients are minimax fits on the reduced ranges; errors stay below about two units in the last place.

#![allow(clippy::excessive_precision)]

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// Adding this leaves the nearest integer in the low bits of the sum.
const ROUNDER: f32 = 12_582_912.0;
/// The leading bits of log(2): few enough that a product with an exponent is exact.
const LN_2_HI: f32 = 0.693_359_4;
const LN_2_LO: f32 = -2.121_944_4e-4;

/// The polynomial with these coefficients, lowest power first.
#[inline(always)]
pub(crate) fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    for i in (0..N - 1).rev() {
        sum = sum.mul_add(x, coefficients[i]);
    }
    sum
}

/// Two to the power `n`, for `n` from -126 to 127.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((n + 127) << 23) as u32)
}

/// Keeps `x` between the bounds; not-a-number stays what it is.
#[inline(always)]
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// Splits `x` into `n log(2) + r` with a small `r`.
#[inline(always)]
fn reduce_exponent(x: f32) -> (i32, f32) {
    let shifted = x.mul_add(LOG2_E, ROUNDER);
    let n = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()) as i32;
    let whole = shifted - ROUNDER;
    let r = whole.mul_add(-LN_2_LO, whole.mul_add(-LN_2_HI, x));
    (n, r)
}

/// `exp(r) - 1` for `r` within half of log(2).
#[inline(always)]
fn exp_m1_reduced(r: f32) -> f32 {
    let p = polynomial(r, [0.5, 1.666_666_6e-1, 4.166_636e-2, 8.333_39e-3, 1.394_072e-3, 1.984_588_5e-4]);
    p.mul_add(r * r, r)
}

/// The exponential function.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (n, r) = reduce_exponent(clamp(x, -104.0, 88.8));
    let p = polynomial(r, [0.499_999_93, 1.666_652e-1, 4.166_839_4e-2, 8.368_78e-3, 1.381_446_7e-3]);
    let y = p.mul_add(r * r, r) + 1.0;
    // In two factors, as n may be too small or too large for one.
    let half = n >> 1;
    y * power_of_two(half) * power_of_two(n - half)
}

/// `exp(x) - 1`, exact for small `x`.
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let (n, r) = reduce_exponent(clamp(x, -20.0, 88.8));
    let p = exp_m1_reduced(r);
    let scale = power_of_two(n - 1);
    let y = 2.0 * scale.mul_add(p, scale - 0.5);
    if x == 0.0 { x } else { y }
}

/// The natural logarithm.
#[inline(always)]
pub fn log(x: f32) -> f32 {
    let (e, f) = split_mantissa(x);
    let y = log_of_split(e, f);
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f32::NAN }
}

/// `x = 2^e (1 + f)` with `1 + f` between the root of a half and the root of two.
#[inline(always)]
fn split_mantissa(x: f32) -> (f32, f32) {
    let tiny = x < f32::MIN_POSITIVE;
    let bits = (if tiny { x * 8_388_608.0 } else { x }).to_bits();
    let e = (bits.wrapping_sub(0x3f35_04f3) as i32) >> 23;
    let f = f32::from_bits(bits.wrapping_sub((e << 23) as u32)) - 1.0;
    (e as f32 - if tiny { 23.0 } else { 0.0 }, f)
}

#[inline(always)]
fn log_of_split(e: f32, f: f32) -> f32 {
    let square = f * f;
    let p = polynomial(
        f,
        [
            3.333_333_2e-1,
            -2.500_082e-1,
            2.000_122_7e-1,
            -1.662_335_7e-1,
            1.420_175_8e-1,
            -1.316_018_3e-1,
            1.276_157_6e-1,
            -7.634_493e-2,
        ],
    );
    let tail = (f * square).mul_add(p, e * LN_2_LO);
    e.mul_add(LN_2_HI, f + square.mul_add(-0.5, tail))
}

/// `log(1 + x)`, exact for small `x`.
#[inline(always)]
pub fn log1p(x: f32) -> f32 {
    let sum = 1.0 + x;
    let y = log(sum);
    // What was lost when the sum was rounded, to first order.
    let lost = (x - (sum - 1.0)) / sum;
    let y = if sum > 0.0 && sum < f32::INFINITY { y + lost } else { y };
    if x == 0.0 { x } else { y }
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let c = clamp(x, -9.02, 9.02);
    let t = c * c;
    let p = polynomial(t, [1.0, 1.378_535_9e-1, 4.008_503e-3, 3.158_893_6e-5, 5.076_178e-8]);
    let q = polynomial(t, [1.0, 4.711_869_2e-1, 2.773_749e-2, 4.207_397e-4, 1.617_475_7e-6, 7.374_347e-10]);
    clamp(c * p / q, -1.0, 1.0)
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `log(1 + exp(x))`, without overflow for large `x`.
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    // Beyond this distance from zero the rounded result is `x`, or `exp(x)`.
    const FAR: f32 = 13.942_385;
    let e = exp(x);
    let y = log1p(e);
    let y = if x < -FAR { e } else { y };
    if x > FAR { x } else { y }
}

/// `exp(x) - 1` below zero, `x` above.
#[inline(always)]
pub fn elu(x: f32) -> f32 {
    let y = expm1(x);
    if x < 0.0 { y } else { x }
}

/// The scaled exponential linear unit.
#[inline(always)]
pub fn selu(x: f32) -> f32 {
    const SCALE: f32 = 1.050_701;
    const SCALE_ALPHA: f32 = 1.758_099_3;
    let y = SCALE_ALPHA * expm1(x);
    if x < 0.0 { y } else { SCALE * x }
}

/// From here on `sin_fast` and `cos_fast` lose digits.
pub const FAST_ANGLE_LIMIT: f32 = 1.0e9;

/// The sine, for angles below `FAST_ANGLE_LIMIT`.
#[inline(always)]
pub fn sin_fast(x: f32) -> f32 {
    let (quadrant, r) = reduce_angle(x);
    let y = sine_of_quadrant(quadrant, r);
    if x == 0.0 { x } else { y }
}

/// The cosine, for angles below `FAST_ANGLE_LIMIT`.
#[inline(always)]
pub fn cos_fast(x: f32) -> f32 {
    let (quadrant, r) = reduce_angle(x);
    sine_of_quadrant(quadrant.wrapping_add(1), r)
}

/// The sine of any angle.
#[inline]
pub fn sin(x: f32) -> f32 {
    if x.abs() < FAST_ANGLE_LIMIT { sin_fast(x) } else { x.sin() }
}

/// The cosine of any angle.
#[inline]
pub fn cos(x: f32) -> f32 {
    if x.abs() < FAST_ANGLE_LIMIT { cos_fast(x) } else { x.cos() }
}

/// The number of quarter turns in `x`, and what is left; in double precision, so that nothing cancels.
#[inline(always)]
fn reduce_angle(x: f32) -> (u32, f32) {
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    let wide = f64::from(x);
    let shifted = wide.mul_add(std::f64::consts::FRAC_2_PI, ROUNDER);
    let turns = shifted - ROUNDER;
    let r = turns.mul_add(-std::f64::consts::FRAC_PI_2, wide);
    (shifted.to_bits() as u32, turns.mul_add(-6.123_233_995_736_766e-17, r) as f32)
}

#[inline(always)]
fn sine_of_quadrant(quadrant: u32, r: f32) -> f32 {
    let t = r * r;
    let s = polynomial(t, [-1.666_666_7e-1, 8.333_329e-3, -1.983_930_8e-4, 2.718_084e-6]);
    let c = polynomial(t, [4.166_664_6e-2, -1.388_731_3e-3, 2.443_278_5e-5]);
    let sine = (s * t).mul_add(r, r);
    let cosine = (c * t).mul_add(t, t.mul_add(-0.5, 1.0));
    let y = if quadrant & 1 == 0 { sine } else { cosine };
    f32::from_bits(y.to_bits() ^ ((quadrant & 2) << 30))
}

/// The error function.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let c = clamp(x, -4.0, 4.0);
    let t = c * c;
    let p = polynomial(
        t,
        [
            std::f32::consts::FRAC_2_SQRT_PI,
            1.852_033_5e-1,
            5.431_690_7e-2,
            3.849_614_2e-3,
            3.796_079_5e-4,
            4.684_749e-6,
            -1.320_208e-8,
        ],
    );
    let q = polynomial(t, [1.0, 4.974_656e-1, 1.139_584_5e-1, 1.546_209_2e-2, 1.307_569_2e-3, 6.311_031e-5]);
    clamp(c * p / q, -1.0, 1.0)
}

/// One minus the error function, exact also where it is tiny.
#[inline(always)]
pub fn erfc(x: f32) -> f32 {
    let z = clamp(x.abs(), 0.0, 10.1);
    let square = z * z;
    let lost = z.mul_add(z, -square);
    let p = polynomial(z, [1.0, 1.238_428_3, 7.316_225e-1, 2.292_273_7e-1, 3.279_824_7e-2]);
    let q = polynomial(z, [1.0, 2.366_808_2, 2.402_27, 1.325_402_7, 4.063_213_3e-1, 5.813_268e-2]);
    let gauss = exp(-square);
    let y = gauss.mul_add(-lost, gauss) * (p / q);
    let y = if x < 0.0 { 2.0 - y } else { y };
    if x.is_nan() { x } else { y }
}

/// One over the square root.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}
