//! The complex Schur form: Hessenberg form, then shifted QR steps.

use super::qr::{reflect, reflector};
use super::{adjoint, identity};
use num_complex::Complex64;

/// Steps for one eigenvalue before giving up.
const LIMIT: usize = 60;

/// `a = q t q'` with `q` unitary and `t` upper triangular.
#[derive(Clone, Debug)]
pub struct Schur {
    /// The triangle; its diagonal holds the eigenvalues.
    pub t: Vec<Complex64>,
    /// The unitary matrix.
    pub q: Vec<Complex64>,
}

/// The Schur form of an `n x n` matrix; none if the numbers are not finite.
pub fn schur(matrix: &[Complex64], n: usize) -> Option<Schur> {
    if !matrix.iter().all(|value| value.is_finite()) {
        return None;
    }
    let Schur { mut t, mut q } = hessenberg(matrix, n);
    let mut end = n.saturating_sub(1);
    let mut steps = 0;
    while end > 0 {
        let start = (1..=end).rev().find(|&row| negligible(&mut t, n, row)).unwrap_or(0);
        if start == end {
            (end, steps) = (end - 1, 0);
            continue;
        }
        steps += 1;
        if steps > LIMIT {
            return None;
        }
        let shift =
            if steps % 10 == 0 { t[end * n + end] + t[end * n + end - 1].norm() } else { corner_shift(&t, n, end) };
        step(&mut t, &mut q, n, (start, end), shift);
    }
    Some(Schur { t, q })
}

fn hessenberg(matrix: &[Complex64], n: usize) -> Schur {
    let (mut t, mut q) = (matrix.to_vec(), identity::<Complex64>(n, n));
    let mut scratch = Vec::new();
    for at in 0..n.saturating_sub(2) {
        let mut v: Vec<Complex64> = (at + 1..n).map(|row| t[row * n + at]).collect();
        let tau = reflector(&mut v);
        t[(at + 1) * n + at] = v[0];
        (at + 2..n).for_each(|row| t[row * n + at] = Complex64::default());
        v[0] = Complex64::new(1.0, 0.0);
        reflect(&mut t[(at + 1) * n..], n, at + 1..n, &v, tau.conj(), &mut scratch);
        for matrix in [&mut t, &mut q] {
            for row in matrix.chunks_exact_mut(n) {
                let dot = row[at + 1..].iter().zip(&v).map(|(value, v)| value * v).sum::<Complex64>() * tau;
                row[at + 1..].iter_mut().zip(&v).for_each(|(value, v)| *value -= dot * v.conj());
            }
        }
    }
    Schur { t, q }
}

/// Whether what stands left of diagonal element `row` is as good as zero; then it becomes zero.
fn negligible(t: &mut [Complex64], n: usize, row: usize) -> bool {
    let size = t[row * n + row].l1_norm() + t[(row - 1) * n + row - 1].l1_norm();
    let size = if size == 0.0 { t.iter().map(|value| value.l1_norm()).fold(0.0, f64::max) } else { size };
    let small = t[row * n + row - 1].l1_norm() <= f64::EPSILON * size;
    if small {
        t[row * n + row - 1] = Complex64::default();
    }
    small
}

/// The eigenvalue of the last corner that is nearer to its last element.
fn corner_shift(t: &[Complex64], n: usize, end: usize) -> Complex64 {
    let [a, b] = [t[(end - 1) * n + end - 1], t[(end - 1) * n + end]];
    let [c, d] = [t[end * n + end - 1], t[end * n + end]];
    let half = (a - d) * 0.5;
    let root = (half * half + b * c).sqrt();
    let root = if (half.conj() * root).re < 0.0 { -root } else { root };
    let sum = half + root;
    if sum.norm() == 0.0 { d } else { d - b * c / sum }
}

/// One QR step on the block `start ..= end`, by rotations of neighbouring rows and columns.
fn step(t: &mut [Complex64], q: &mut [Complex64], n: usize, (start, end): (usize, usize), shift: Complex64) {
    let mut pair = (t[start * n + start] - shift, t[(start + 1) * n + start]);
    for at in start..end {
        if at > start {
            pair = (t[at * n + at - 1], t[(at + 1) * n + at - 1]);
        }
        let length = pair.0.norm().hypot(pair.1.norm());
        if length == 0.0 {
            continue;
        }
        let (c, s) = (pair.0 / length, pair.1 / length);
        let (first, second) = t.split_at_mut((at + 1) * n);
        let (x, y) = (&mut first[at * n..], &mut second[..n]);
        for (x, y) in x.iter_mut().zip(y).skip(at.saturating_sub(1)) {
            (*x, *y) = (c.conj() * *x + s.conj() * *y, c * *y - s * *x);
        }
        if at > start {
            t[(at + 1) * n + at - 1] = Complex64::default();
        }
        let turn = |row: &mut [Complex64]| {
            (row[at], row[at + 1]) = (row[at] * c + row[at + 1] * s, row[at + 1] * c.conj() - row[at] * s.conj());
        };
        t.chunks_exact_mut(n).take(n.min(at + 3).min(end + 1)).for_each(turn);
        q.chunks_exact_mut(n).for_each(turn);
    }
}

/// Eigenvectors of the matrix of a Schur form, as columns of length one.
pub fn eigenvectors(form: &Schur, n: usize) -> Vec<Complex64> {
    let Schur { t, q } = form;
    let size = t.iter().map(|value| value.norm()).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let mut result = vec![Complex64::default(); n * n];
    for at in 0..n {
        let mut x = vec![Complex64::default(); n];
        x[at] = Complex64::new(1.0, 0.0);
        for row in (0..at).rev() {
            let sum: Complex64 = (row + 1..=at).map(|col| t[row * n + col] * x[col]).sum();
            let gap = t[row * n + row] - t[at * n + at];
            // Equal eigenvalues: as good as equal is what rounding leaves.
            let gap = if gap.norm() < f64::EPSILON * size { Complex64::new(f64::EPSILON * size, 0.0) } else { gap };
            x[row] = -sum / gap;
        }
        let vector: Vec<Complex64> =
            q.chunks_exact(n).map(|row| row.iter().zip(&x).map(|(q, x)| q * x).sum()).collect();
        let length = vector.iter().map(|value| value.norm_sqr()).sum::<f64>().sqrt();
        (0..n).for_each(|row| result[row * n + at] = vector[row] / length);
    }
    result
}

impl Schur {
    /// `q f q'` for an upper triangular `f`.
    pub(super) fn back(&self, f: &[Complex64], n: usize) -> Vec<Complex64> {
        product(&product(&self.q, f, n), &adjoint(&self.q, n, n), n)
    }
}

fn product(a: &[Complex64], b: &[Complex64], n: usize) -> Vec<Complex64> {
    let mut result = vec![Complex64::default(); n * n];
    for (row, result) in a.chunks_exact(n.max(1)).zip(result.chunks_exact_mut(n.max(1))) {
        for (&factor, b) in row.iter().zip(b.chunks_exact(n)) {
            result.iter_mut().zip(b).for_each(|(result, b)| *result += factor * b);
        }
    }
    result
}
