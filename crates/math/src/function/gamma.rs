//! The gamma function's family, in double precision.

use std::f64::consts::PI;

use super::double::lgamma;

/// Even Bernoulli numbers from the second on.
const BERNOULLI: [f64; 12] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
    -174_611.0 / 330.0,
    854_513.0 / 138.0,
    -236_364_091.0 / 2730.0,
];
/// No sum or fraction here needs more terms.
const TERMS: usize = 20_000;
/// Stands in for zero in a continued fraction.
const TINY: f64 = 1e-300;

/// The logarithmic derivative of the gamma function; not-a-number at its poles.
pub fn digamma(x: f64) -> f64 {
    if x <= 0.0 {
        let pole = x == x.floor();
        return if pole { f64::NAN } else { digamma(1.0 - x) - PI / (PI * (x - x.round())).tan() };
    }
    if x == f64::INFINITY {
        return x;
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let mut power = square;
    for (i, b) in BERNOULLI[..8].iter().enumerate() {
        sum -= b / (2 * (i + 1)) as f64 * power;
        power *= square;
    }
    sum + x.ln() - 0.5 / x
}

/// The Hurwitz zeta function: the sum of `(q + k)^-x`.
pub fn zeta(x: f64, q: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x < 1.0 || x.is_nan() || q.is_nan() {
        return f64::NAN;
    }
    if x == f64::INFINITY {
        return if q < 1.0 { f64::INFINITY } else { f64::from(q == 1.0) };
    }
    if q <= 0.0 {
        if q == q.floor() {
            return if x % 2.0 == 0.0 { f64::INFINITY } else { f64::NAN };
        }
        if x != x.floor() {
            return f64::NAN;
        }
    }
    if q == f64::INFINITY {
        return 0.0;
    }
    euler_maclaurin(x, q)
}

fn euler_maclaurin(x: f64, q: f64) -> f64 {
    let (mut sum, mut a) = (0.0, q);
    for i in 0.. {
        if i >= 9 && a > 9.0 {
            break;
        }
        let term = a.powf(-x);
        sum += term;
        if a > 0.0 && (term / sum).abs() < 1e-17 {
            return sum;
        }
        a += 1.0;
    }
    let mut power = a.powf(-x);
    sum += power * a / (x - 1.0) + 0.5 * power;
    // Derivatives of the summand at the place where the sum was cut.
    let mut factor = x;
    power /= a;
    let mut factorial = 2.0;
    for (i, b) in BERNOULLI.iter().enumerate() {
        let term = b / factorial * factor * power;
        sum += term;
        if (term / sum).abs() < 1e-17 {
            break;
        }
        let k = 2 * i;
        factor *= (x + (k + 1) as f64) * (x + (k + 2) as f64);
        power /= a * a;
        factorial *= ((k + 3) * (k + 4)) as f64;
    }
    sum
}

/// The derivative of order `n` of `digamma`.
pub fn polygamma(n: f64, x: f64) -> f64 {
    if n == 0.0 {
        return digamma(x);
    }
    if n < 0.0 || n != n.floor() {
        return f64::NAN;
    }
    let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
    sign * lgamma(n + 1.0).exp() * zeta(n + 1.0, x)
}

/// The lower incomplete gamma function, divided by the complete one.
pub fn igamma(a: f64, x: f64) -> f64 {
    match edge(a, x) {
        Some(lower) => lower,
        None if x > 1.0 && x > a => 1.0 - upper_fraction(a, x),
        None => lower_series(a, x),
    }
}

/// The upper incomplete gamma function, divided by the complete one.
pub fn igammac(a: f64, x: f64) -> f64 {
    match edge(a, x) {
        Some(_) if a.is_nan() || a <= 0.0 => f64::NAN,
        Some(_) if a == f64::INFINITY && x == a => 0.0,
        Some(lower) => 1.0 - lower,
        None if x < 1.0 || x < a => 1.0 - lower_series(a, x),
        None => upper_fraction(a, x),
    }
}

/// What the lower function is outside of the open quadrant.
fn edge(a: f64, x: f64) -> Option<f64> {
    if x == 0.0 {
        return Some(0.0);
    }
    if a.is_nan() || x.is_nan() || x < 0.0 || a <= 0.0 {
        return Some(f64::NAN);
    }
    if a == f64::INFINITY {
        return Some(0.0);
    }
    (x == f64::INFINITY).then_some(1.0)
}

/// `x^a exp(-x) / gamma(a)`.
fn prefix(a: f64, x: f64) -> f64 {
    (a * x.ln() - x - lgamma(a)).exp()
}

fn lower_series(a: f64, x: f64) -> f64 {
    let factor = prefix(a, x) / a;
    if factor == 0.0 {
        return 0.0;
    }
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..TERMS {
        term *= x / (a + k as f64);
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum * factor
}

fn upper_fraction(a: f64, x: f64) -> f64 {
    let factor = prefix(a, x);
    if factor == 0.0 {
        return 0.0;
    }
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut value = d;
    for k in 1..TERMS {
        let numerator = -(k as f64) * (k as f64 - a);
        b += 2.0;
        d = 1.0 / nonzero(numerator * d + b);
        c = nonzero(b + numerator / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value * factor
}

fn nonzero(x: f64) -> f64 {
    if x.abs() < TINY { TINY } else { x }
}

/// The derivative of `igamma` by its first argument.
pub fn igamma_grad_a(a: f64, x: f64) -> f64 {
    if let Some(lower) = edge(a, x) {
        return if lower.is_nan() { lower } else { 0.0 };
    }
    let (log, mut term, mut sum) = (x.ln(), prefix(a, x) / a, 0.0);
    let mut digamma_next = digamma(a + 1.0);
    for k in 1..TERMS {
        let change = term * (log - digamma_next);
        sum += change;
        if k as f64 > x && change.abs() <= 1e-17 * f64::abs(sum) {
            break;
        }
        term *= x / (a + k as f64);
        digamma_next += 1.0 / (a + k as f64);
    }
    sum
}

/// The incomplete beta function, divided by the complete one.
pub fn betainc(a: f64, b: f64, x: f64) -> f64 {
    if a.is_nan() || b.is_nan() || a <= 0.0 || b <= 0.0 || !(0.0..=1.0).contains(&x) {
        return f64::NAN;
    }
    if x == 0.0 || x == 1.0 {
        return x;
    }
    let log = lgamma(a + b) - lgamma(a) - lgamma(b) + a * x.ln() + b * (-x).ln_1p();
    // The fraction converges fast on one side of the mean only.
    if x < (a + 1.0) / (a + b + 2.0) {
        log.exp() * beta_fraction(a, b, x) / a
    } else {
        1.0 - log.exp() * beta_fraction(b, a, 1.0 - x) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let mut c = 1.0;
    let mut d = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..TERMS {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = value;
        for numerator in [even, odd] {
            d = 1.0 / nonzero(1.0 + numerator * d);
            c = nonzero(1.0 + numerator / c);
            value *= c * d;
        }
        if (value / before - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}
