//! Inverse error functions and integrals that have no elementary form, in double precision.

use std::f64::consts::{FRAC_2_SQRT_PI, FRAC_PI_2, PI, SQRT_2};

use num_complex::Complex;

const EULER_GAMMA: f64 = 0.577_215_664_901_532_9;

/// The number whose error function is `x`.
pub fn erfinv(x: f64) -> f64 {
    if x == 0.0 { x } else { erfcinv(1.0 - x.abs(), x.abs()).copysign(x) }
}

/// The number below which a standard normal one lies with probability `p`.
pub fn ndtri(p: f64) -> f64 {
    if p < 0.5 { -SQRT_2 * erfcinv(2.0 * p, 1.0 - 2.0 * p) } else { SQRT_2 * erfcinv(2.0 - 2.0 * p, 2.0 * p - 1.0) }
}

/// Solves `erfc(y) = q`, which is `erf(y) = z`, for `y` not below zero.
fn erfcinv(q: f64, z: f64) -> f64 {
    if q <= 0.0 || q.is_nan() || z > 1.0 {
        return if q == 0.0 && z <= 1.0 { f64::INFINITY } else { f64::NAN };
    }
    // Winitzki's formula is good to three digits; each step of Halley's triples them.
    const A: f64 = 0.147;
    let log = (q * (1.0 + z)).ln();
    let half = 2.0 / (PI * A) + log / 2.0;
    let mut y = ((half * half - log / A).sqrt() - half).max(0.0).sqrt();
    for _ in 0..3 {
        let error = if z < 0.5 { z - libm::erf(y) } else { libm::erfc(y) - q };
        let step = error / (-FRAC_2_SQRT_PI * (-y * y).exp());
        if step == 0.0 || !step.is_finite() {
            break;
        }
        y -= step / (1.0 + y * step);
    }
    y
}

/// Dawson's integral.
pub fn dawsn(x: f64) -> f64 {
    let z = x.abs();
    let square = z * z;
    if z < 0.2 {
        let mut sum = 0.0;
        let mut term = x;
        for k in 1..16 {
            sum += term;
            term *= -2.0 * square / f64::from(2 * k + 1);
        }
        return sum;
    }
    if z > 50.0 {
        let inverse = 1.0 / (2.0 * square);
        return (1.0 + inverse * (1.0 + 3.0 * inverse * (1.0 + 5.0 * inverse))) / (2.0 * x);
    }
    rybicki(z).copysign(x)
}

/// Rybicki's sum over odd multiples of a step, around `x`.
fn rybicki(x: f64) -> f64 {
    const STEP: f64 = 0.2;
    let center = 2 * (x / (2.0 * STEP)).round() as i64;
    let mut sum = 0.0;
    for k in (-33..=33).step_by(2) {
        let n = center + k;
        let distance = x - n as f64 * STEP;
        sum += (-distance * distance).exp() / n as f64;
    }
    sum / PI.sqrt()
}

/// The exponential integral Ei.
pub fn expint(x: f64) -> f64 {
    if x < 0.0 || x.is_nan() {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x == f64::INFINITY {
        return x;
    }
    let (mut term, mut sum) = (1.0, 0.0);
    if x < 40.0 {
        for k in 1..200 {
            term *= x / f64::from(k);
            sum += term / f64::from(k);
        }
        return EULER_GAMMA + x.ln() + sum;
    }
    for k in 1..60 {
        sum += term;
        let next = term * f64::from(k) / x;
        if next >= term || next < 1e-18 {
            break;
        }
        term = next;
    }
    (x - x.ln()).exp() * sum
}

/// Fresnel's integral of `cos(pi t^2 / 2)`.
pub fn fresnel_cos(x: f64) -> f64 {
    fresnel(x).re
}

/// Fresnel's integral of `sin(pi t^2 / 2)`.
pub fn fresnel_sin(x: f64) -> f64 {
    fresnel(x).im
}

fn fresnel(x: f64) -> Complex<f64> {
    let z = x.abs();
    let positive = if x.is_nan() {
        Complex::new(f64::NAN, f64::NAN)
    } else if z > 1e5 {
        Complex::new(0.5, 0.5)
    } else if z < 1.6 {
        fresnel_series(z)
    } else {
        fresnel_fraction(z)
    };
    if x < 0.0 { -positive } else { positive }
}

/// The sum of `x (i pi x^2 / 2)^n / (n! (2n + 1))`.
fn fresnel_series(x: f64) -> Complex<f64> {
    let step = Complex::new(0.0, FRAC_PI_2 * x * x);
    let (mut term, mut sum) = (Complex::new(x, 0.0), Complex::new(0.0, 0.0));
    for n in 0..40 {
        sum += term / f64::from(2 * n + 1);
        term = term * step / f64::from(n + 1);
    }
    sum
}

/// Through the continued fraction of the complex error function.
fn fresnel_fraction(x: f64) -> Complex<f64> {
    let square = PI * x * x;
    let mut b = Complex::new(1.0, -square);
    let mut c = Complex::new(1e300, 0.0);
    let mut d = b.inv();
    let mut value = d;
    for k in 1..500 {
        let n = f64::from(2 * k - 1);
        let numerator = -n * (n + 1.0);
        b += 4.0;
        d = (d * numerator + b).inv();
        c = b + numerator * c.inv();
        let change = c * d;
        value *= change;
        if (change - 1.0).norm() < 1e-16 {
            break;
        }
    }
    // The phase is taken of the remainder, as large squares would lose it.
    let angle = FRAC_PI_2 * (x * x % 4.0);
    let value = Complex::new(x, -x) * value;
    Complex::new(0.5, 0.5) * (1.0 - Complex::new(angle.cos(), angle.sin()) * value)
}

/// Spence's integral: the dilogarithm of `1 - x`.
pub fn spence(x: f64) -> f64 {
    const ZETA_2: f64 = PI * PI / 6.0;
    if x < 0.0 || x.is_nan() {
        return f64::NAN;
    }
    if x == 0.0 {
        return ZETA_2;
    }
    if x < 0.5 {
        ZETA_2 - x.ln() * (-x).ln_1p() - dilogarithm(x)
    } else if x <= 2.0 {
        dilogarithm(1.0 - x)
    } else {
        let log = x.ln();
        -0.5 * log * log - spence(1.0 / x)
    }
}

/// The dilogarithm for arguments from -1 to 1/2, by powers of the logarithm.
fn dilogarithm(z: f64) -> f64 {
    /// Bernoulli numbers over factorials: `B(2k) / (2k + 1)!`.
    const COEFFICIENTS: [f64; 10] = [
        2.777_777_777_777_778e-2,
        -2.777_777_777_777_778e-4,
        4.724_111_866_969_01e-6,
        -9.185_773_074_661_964e-8,
        1.897_886_998_897_1e-9,
        -4.064_761_645_144_226e-11,
        8.921_691_020_456_452e-13,
        -1.993_929_586_072_107_6e-14,
        4.518_980_029_619_918e-16,
        -1.035_651_761_218_124_7e-17,
    ];
    let u = -(-z).ln_1p();
    let square = u * u;
    let mut sum = 0.0;
    for &coefficient in COEFFICIENTS.iter().rev() {
        sum = sum * square + coefficient;
    }
    u - square / 4.0 + u * square * sum
}
