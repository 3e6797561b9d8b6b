//! Eigenvalues and eigenvectors of self-adjoint matrices: tridiagonal form, then implicit QL steps.

use super::qr::{reflect, reflector};
use super::{RealScalar, Scalar, identity, rotate};

/// Steps for one eigenvalue before giving up.
const LIMIT: usize = 60;

/// The eigenvalues of an `n x n` matrix, of which only the lower triangle is read, in rising order, and its eigenvectors
/// as rows (if asked for). None if they cannot be found, which only happens to numbers that are not finite.
pub fn self_adjoint_eigen<T: Scalar>(matrix: &[T], n: usize, vectors: bool) -> Option<(Vec<T::Real>, Vec<T>)> {
    let (mut diagonal, mut beside, mut rows) = tridiagonal(matrix, n, vectors);
    if !diagonal.iter().chain(&beside).all(|value| value.finite()) {
        return None;
    }
    for at in 0..n {
        implicit_steps(&mut diagonal, &mut beside, at, &mut rows, n)?;
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| diagonal[a].wide().total_cmp(&diagonal[b].wide()));
    let values = order.iter().map(|&at| diagonal[at]).collect();
    let vectors =
        if vectors { order.iter().flat_map(|&at| &rows[at * n..][..n]).copied().collect() } else { Vec::new() };
    Some((values, vectors))
}

/// `a = q t q'` with `t` real and tridiagonal: its diagonal, what stands beside it, and the columns of `q` as rows.
fn tridiagonal<T: Scalar>(matrix: &[T], n: usize, vectors: bool) -> (Vec<T::Real>, Vec<T::Real>, Vec<T>) {
    let mut a = full(matrix, n);
    let mut beside = vec![T::Real::default(); n];
    let mut taus = Vec::new();
    for at in 0..n.saturating_sub(1) {
        let mut v: Vec<T> = (at + 1..n).map(|row| a[row * n + at]).collect();
        let tau = reflector(&mut v);
        beside[at] = v[0].real();
        v[0] = T::ONE;
        (at + 1..n).for_each(|row| a[row * n + at] = v[row - at - 1]);
        two_sided(&mut a, n, at + 1, &v, tau);
        taus.push(tau);
    }
    let diagonal = (0..n).map(|at| a[at * n + at].real()).collect();
    let mut rows = Vec::new();
    if vectors {
        let mut q = identity::<T>(n, n);
        let mut scratch = Vec::new();
        for (at, &tau) in taus.iter().enumerate().rev() {
            let v: Vec<T> = (at + 1..n).map(|row| a[row * n + at]).collect();
            reflect(&mut q[(at + 1) * n..], n, 0..n, &v, tau, &mut scratch);
        }
        rows = (0..n * n).map(|place| q[place % n * n + place / n]).collect();
    }
    (diagonal, beside, rows)
}

/// Both triangles from the lower one; the diagonal is real.
fn full<T: Scalar>(matrix: &[T], n: usize) -> Vec<T> {
    let value = |place: usize| match (place / n, place % n) {
        (row, col) if row > col => matrix[place],
        (row, col) if row < col => matrix[col * n + row].conjugate(),
        _ => T::from_real(matrix[place].real()),
    };
    (0..n * n).map(value).collect()
}

/// `a = h' a h` on the rows and columns from `first` on, where `h = 1 - tau v v'`.
fn two_sided<T: Scalar>(a: &mut [T], n: usize, first: usize, v: &[T], tau: T) {
    if tau == T::default() {
        return;
    }
    let dot = |x: &[T], y: &[T]| x.iter().zip(y).fold(T::default(), |sum, (&x, &y)| sum + x * y);
    let mut w: Vec<T> = a[first * n..].chunks_exact(n).map(|row| tau * dot(&row[first..], v)).collect();
    let half = T::Real::of(-0.5);
    let overlap = w.iter().zip(v).fold(T::default(), |sum, (&w, &v)| sum + w.conjugate() * v);
    let factor = (tau * overlap).scale(half);
    w.iter_mut().zip(v).for_each(|(w, &v)| *w = *w + factor * v);
    for (row, values) in a[first * n..].chunks_exact_mut(n).enumerate() {
        for (col, value) in values[first..].iter_mut().enumerate() {
            *value = *value - v[row] * w[col].conjugate() - w[row] * v[col].conjugate();
        }
    }
}

/// Steps until what stands beside diagonal element `at` vanishes.
fn implicit_steps<T: Scalar>(
    diagonal: &mut [T::Real],
    beside: &mut [T::Real],
    at: usize,
    rows: &mut [T],
    n: usize,
) -> Option<()> {
    let (zero, one, two) = (T::Real::default(), <T::Real as Scalar>::ONE, T::Real::of(2.0));
    for _ in 0..LIMIT {
        let vanishes = |m: usize| {
            beside[m].magnitude() <= T::Real::EPSILON * (diagonal[m].magnitude() + diagonal[m + 1].magnitude())
        };
        let end = (at..n - 1).find(|&m| vanishes(m)).unwrap_or(n - 1);
        if end == at {
            return Some(());
        }
        let slope = (diagonal[at + 1] - diagonal[at]) / (two * beside[at]);
        let shift = beside[at] / (slope + slope.diagonal(one).with_sign(slope));
        let mut g = diagonal[end] - diagonal[at] + shift;
        let (mut s, mut c, mut p) = (one, one, zero);
        let mut early = false;
        for i in (at..end).rev() {
            let (f, b) = (s * beside[i], c * beside[i]);
            let r = f.diagonal(g);
            beside[i + 1] = r;
            if r == zero {
                diagonal[i + 1] = diagonal[i + 1] - p;
                beside[end] = zero;
                early = true;
                break;
            }
            (s, c) = (f / r, g / r);
            g = diagonal[i + 1] - p;
            let t = (diagonal[i] - g) * s + two * c * b;
            p = s * t;
            diagonal[i + 1] = g + p;
            g = c * t - b;
            if !rows.is_empty() {
                rotate(rows, n, (i + 1, i), c, s);
            }
        }
        if !early {
            diagonal[at] = diagonal[at] - p;
            beside[at] = g;
            beside[end] = zero;
        }
    }
    None
}
