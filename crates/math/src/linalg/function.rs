//! Functions of matrices: the exponential, the logarithm, the square root.

use super::{RealScalar, Scalar, identity, lu, schur};
use crate::Pool;
use crate::gemm::{Matrix, matmul};
use num_complex::Complex64;

/// The exponential of an `n x n` matrix: a Padé approximant of a small power, squared up again.
pub fn exponential<T: Scalar>(pool: &Pool, matrix: &[T], n: usize) -> Vec<T> {
    const PADE: [f64; 14] = [
        64764752532480000.0,
        32382376266240000.0,
        7771770303897600.0,
        1187353796428800.0,
        129060195264000.0,
        10559470521600.0,
        670442572800.0,
        33522128640.0,
        1323241920.0,
        40840800.0,
        960960.0,
        16380.0,
        182.0,
        1.0,
    ];
    /// Matrices up to this size are approximated well enough.
    const SMALL: f64 = 5.371920351148152;
    let size = (0..n).map(|col| (0..n).map(|row| matrix[row * n + col].modulus().wide()).sum()).fold(0.0, f64::max);
    let halvings = if size > SMALL && size.is_finite() { (size / SMALL).log2().ceil() as i32 } else { 0 };
    let factor = T::Real::of(0.5_f64.powi(halvings));
    let a: Vec<T> = matrix.iter().map(|value| value.scale(factor)).collect();
    let times = |x: &[T], y: &[T]| product(pool, x, y, n);
    let unit = identity::<T>(n, n);
    let a2 = times(&a, &a);
    let a4 = times(&a2, &a2);
    let a6 = times(&a4, &a2);
    let sum = |terms: &[(&[T], f64)]| {
        let value =
            |place: usize| terms.iter().fold(T::default(), |sum, (term, by)| sum + term[place].scale(T::Real::of(*by)));
        (0..n * n).map(value).collect::<Vec<T>>()
    };
    let part = |parity: usize| {
        let p = |i: usize| PADE[2 * i + parity];
        let high = times(&a6, &sum(&[(&a6, p(6)), (&a4, p(5)), (&a2, p(4))]));
        sum(&[(&high, 1.0), (&a6, p(3)), (&a4, p(2)), (&a2, p(1)), (&unit, p(0))])
    };
    let (odd, even) = (times(&a, &part(1)), part(0));
    let lower = sum(&[(&even, 1.0), (&odd, -1.0)]);
    let mut result = lu(pool, &lower, n).solve(pool, &sum(&[(&even, 1.0), (&odd, 1.0)]), n);
    for _ in 0..halvings {
        result = times(&result, &result);
    }
    result
}

/// The principal square root of an `n x n` matrix; none if its numbers are not finite.
pub fn square_root<T: Scalar>(matrix: &[T], n: usize) -> Option<Vec<T>> {
    let wide: Vec<Complex64> = matrix.iter().map(|value| value.to_complex()).collect();
    let form = schur(&wide, n)?;
    let root = triangle_root(&form.t, n);
    Some(form.back(&root, n).into_iter().map(T::from_complex).collect())
}

/// The principal square root of an upper triangle, diagonal by diagonal.
fn triangle_root(t: &[Complex64], n: usize) -> Vec<Complex64> {
    let mut root = vec![Complex64::default(); n * n];
    for col in 0..n {
        root[col * n + col] = t[col * n + col].sqrt();
        for row in (0..col).rev() {
            let inner: Complex64 = (row + 1..col).map(|k| root[row * n + k] * root[k * n + col]).sum();
            let sum = root[row * n + row] + root[col * n + col];
            let rest = t[row * n + col] - inner;
            root[row * n + col] = if rest == Complex64::default() { rest } else { rest / sum };
        }
    }
    root
}

/// The principal logarithm of an `n x n` matrix; none if its numbers are not finite.
pub fn logarithm<T: Scalar>(matrix: &[T], n: usize) -> Option<Vec<T>> {
    /// More roots than any matrix of doubles needs.
    const MOST: usize = 120;
    let wide: Vec<Complex64> = matrix.iter().map(|value| value.to_complex()).collect();
    let form = schur(&wide, n)?;
    let mut root = form.t.clone();
    let mut roots = 0;
    while distance_from_unit(&root, n) > 0.25 && roots < MOST {
        root = triangle_root(&root, n);
        roots += 1;
    }
    let mut log = small_logarithm(&root, n);
    log.iter_mut().for_each(|value| *value *= 2.0_f64.powi(roots as i32));
    // Roots of the diagonal lose what the logarithm itself does not.
    (0..n).for_each(|at| log[at * n + at] = form.t[at * n + at].ln());
    Some(form.back(&log, n).into_iter().map(T::from_complex).collect())
}

fn distance_from_unit(t: &[Complex64], n: usize) -> f64 {
    let gap = |row: usize, col: usize| (t[row * n + col] - if row == col { 1.0 } else { 0.0 }).norm();
    (0..n).map(|col| (0..=col).map(|row| gap(row, col)).sum()).fold(0.0, f64::max)
}

/// The logarithm of a triangle near the unit matrix: the integral of `x / (1 + s x)` over `s`, by Gauss's rule.
fn small_logarithm(t: &[Complex64], n: usize) -> Vec<Complex64> {
    let x: Vec<Complex64> = (0..n * n).map(|at| t[at] - if at / n == at % n { 1.0 } else { 0.0 }).collect();
    let mut log = vec![Complex64::default(); n * n];
    for (node, weight) in gauss_rule() {
        // Columns of `(1 + node x)^-1 x`, from the diagonal up.
        for col in 0..n {
            let mut solved = vec![Complex64::default(); col + 1];
            for row in (0..=col).rev() {
                let inner: Complex64 = (row + 1..=col).map(|k| x[row * n + k] * node * solved[k]).sum();
                solved[row] = (x[row * n + col] - inner) / (1.0 + x[row * n + row] * node);
                log[row * n + col] += solved[row] * weight;
            }
        }
    }
    log
}

/// Nodes and weights of Gauss's rule on `0 ..= 1`, the nodes by Newton's method.
fn gauss_rule() -> Vec<(f64, f64)> {
    const NODES: usize = 12;
    let legendre = |x: f64| {
        let (mut before, mut now) = (1.0, x);
        for k in 2..=NODES {
            let k = k as f64;
            (before, now) = (now, ((2.0 * k - 1.0) * x * now - (k - 1.0) * before) / k);
        }
        (now, NODES as f64 * (x * now - before) / (x * x - 1.0))
    };
    let node = |i: usize| {
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (NODES as f64 + 0.5)).cos();
        for _ in 0..20 {
            let (value, slope) = legendre(x);
            x -= value / slope;
        }
        let slope = legendre(x).1;
        ((x + 1.0) / 2.0, 1.0 / ((1.0 - x * x) * slope * slope))
    };
    (0..NODES).map(node).collect()
}

fn product<T: Scalar>(pool: &Pool, x: &[T], y: &[T], n: usize) -> Vec<T> {
    let mut result = vec![T::default(); n * n];
    matmul(pool, Matrix::new(x, n, n), Matrix::new(y, n, n), &mut result);
    result
}
