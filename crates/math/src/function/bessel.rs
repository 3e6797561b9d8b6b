//! Bessel functions of orders zero and one, in double precision.

use std::f64::consts::PI;

const EULER_GAMMA: f64 = 0.577_215_664_901_532_9;
/// From here on the expansions for large arguments are exact to the last digit.
const LARGE: f64 = 30.0;

/// `exp(-|x|)` times the modified function of the first kind, of order `N`.
fn first_scaled<const N: u32>(x: f64) -> f64 {
    let z = x.abs();
    let y = if z < LARGE { first_series::<N>(z) * (-z).exp() } else { large::<N>(z, -1.0) / (2.0 * PI * z).sqrt() };
    if N == 1 && x < 0.0 { -y } else { y }
}

/// The sum of `(x/2)^(2k+N) / (k! (k+N)!)`.
fn first_series<const N: u32>(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut term, mut sum) = (1.0, 0.0);
    for k in 1.. {
        sum += term;
        term *= quarter / (f64::from(k) * f64::from(k + N));
        if term < sum * 1e-18 || !term.is_finite() {
            break;
        }
    }
    if N == 1 { sum * x / 2.0 } else { sum }
}

/// Hankel's expansion; `sign` alternates for the first kind.
fn large<const N: u32>(x: f64, sign: f64) -> f64 {
    let mu = f64::from(4 * N * N);
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..60 {
        let odd = f64::from(2 * k - 1);
        let next = term * sign * (mu - odd * odd) / (f64::from(8 * k) * x);
        if next.abs() >= f64::abs(term) || next == 0.0 {
            break;
        }
        term = next;
        sum += term;
    }
    sum
}

/// `exp(x)` times the modified function of the second kind, of order `N`.
fn second_scaled<const N: u32>(x: f64) -> f64 {
    if x <= 0.0 {
        return f64::INFINITY;
    }
    if x.is_nan() {
        return x;
    }
    if x < 1.0 {
        return second_series::<N>(x) * x.exp();
    }
    if x > LARGE { large::<N>(x, 1.0) * (PI / (2.0 * x)).sqrt() } else { second_integral::<N>(x) }
}

fn second_series<const N: u32>(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let log = (x / 2.0).ln();
    let (mut term, mut sum, mut harmonic) = (1.0, 0.0, -EULER_GAMMA);
    for k in 1..40 {
        let next_harmonic = harmonic + 1.0 / f64::from(k);
        sum += term * if N == 0 { harmonic } else { harmonic + next_harmonic };
        harmonic = next_harmonic;
        term *= quarter / (f64::from(k) * f64::from(k + N));
    }
    match N {
        0 => sum - log * first_series::<0>(x),
        _ => 1.0 / x + log * first_series::<1>(x) - x / 4.0 * sum,
    }
}

/// The integral of `exp(-x (cosh(t) - 1)) cosh(N t)`; the trapezoidal rule is exact to the last digit here.
fn second_integral<const N: u32>(x: f64) -> f64 {
    const STEP: f64 = 1.0 / 16.0;
    let mut sum = 0.5;
    for k in 1.. {
        let cosh = (f64::from(k) * STEP).cosh();
        let term = (-x * (cosh - 1.0)).exp() * if N == 0 { 1.0 } else { cosh };
        sum += term;
        if term < sum * 1e-18 {
            break;
        }
    }
    sum * STEP
}

/// `exp(-|x|)` times the modified Bessel function of the first kind of order zero.
pub fn i0e(x: f64) -> f64 {
    first_scaled::<0>(x)
}

/// The modified Bessel function of the first kind of order zero.
pub fn i0(x: f64) -> f64 {
    unscaled(first_scaled::<0>(x), x.abs())
}

/// `exp(-|x|)` times the modified Bessel function of the first kind of order one.
pub fn i1e(x: f64) -> f64 {
    first_scaled::<1>(x)
}

/// The modified Bessel function of the first kind of order one.
pub fn i1(x: f64) -> f64 {
    unscaled(first_scaled::<1>(x), x.abs())
}

/// `exp(x)` times the modified Bessel function of the second kind of order zero.
pub fn k0e(x: f64) -> f64 {
    second_scaled::<0>(x)
}

/// The modified Bessel function of the second kind of order zero.
pub fn k0(x: f64) -> f64 {
    unscaled(second_scaled::<0>(x), -x.max(0.0))
}

/// `exp(x)` times the modified Bessel function of the second kind of order one.
pub fn k1e(x: f64) -> f64 {
    second_scaled::<1>(x)
}

/// The modified Bessel function of the second kind of order one.
pub fn k1(x: f64) -> f64 {
    unscaled(second_scaled::<1>(x), -x.max(0.0))
}

/// The Bessel function of the second kind of order zero.
pub fn y0(x: f64) -> f64 {
    if x < 0.0 { f64::NEG_INFINITY } else { libm::y0(x) }
}

/// The Bessel function of the second kind of order one.
pub fn y1(x: f64) -> f64 {
    if x < 0.0 { f64::NEG_INFINITY } else { libm::y1(x) }
}

/// `scaled exp(exponent)`, in two factors so that a small one does not lose a large one.
fn unscaled(scaled: f64, exponent: f64) -> f64 {
    let half = (exponent / 2.0).exp();
    if half == 0.0 { 0.0 } else { scaled * half * half }
}
