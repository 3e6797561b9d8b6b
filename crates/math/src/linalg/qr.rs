//! The QR factors of a matrix by Householder reflections.

use super::{RealScalar, Scalar, identity, subtract_scaled};

/// Reflections and the triangle they leave.
#[derive(Clone, Debug)]
pub struct Qr<T> {
    /// On and above the diagonal `r`; below it the reflections, whose first number is one.
    packed: Vec<T>,
    /// How strong each reflection is.
    taus: Vec<T>,
    rows: usize,
    cols: usize,
}

/// Factors a matrix.
pub fn qr<T: Scalar>(matrix: &[T], rows: usize, cols: usize) -> Qr<T> {
    let mut packed = matrix.to_vec();
    let mut taus = Vec::with_capacity(rows.min(cols));
    let mut row = Vec::with_capacity(cols);
    for at in 0..rows.min(cols) {
        let mut column: Vec<T> = packed[at * cols + at..].iter().step_by(cols).copied().collect();
        let tau = reflector(&mut column);
        for (place, &value) in packed[at * cols + at..].iter_mut().step_by(cols).zip(&column) {
            *place = value;
        }
        column[0] = T::ONE;
        reflect(&mut packed[at * cols..], cols, at + 1..cols, &column, tau.conjugate(), &mut row);
        taus.push(tau);
    }
    Qr { packed, taus, rows, cols }
}

impl<T: Scalar> Qr<T> {
    /// The upper triangle, `height` rows of it.
    pub fn r(&self, height: usize) -> Vec<T> {
        let mut r = vec![T::default(); height * self.cols];
        for row in 0..height.min(self.rows) {
            let from = row.min(self.cols);
            r[row * self.cols..][from..self.cols].copy_from_slice(&self.packed[row * self.cols..][from..self.cols]);
        }
        r
    }

    /// The unitary factor, `width` columns of it.
    pub fn q(&self, width: usize) -> Vec<T> {
        let mut q = identity(self.rows, width);
        let mut row = Vec::with_capacity(width);
        for (at, &tau) in self.taus.iter().enumerate().rev() {
            let mut column: Vec<T> = self.packed[at * self.cols + at..].iter().step_by(self.cols).copied().collect();
            column[0] = T::ONE;
            reflect(&mut q[at * width..], width, 0..width, &column, tau, &mut row);
        }
        q
    }
}

/// Turns a vector into the reflection that leaves only its first number, which stands there now; `1 - tau v v'` with a
/// first number of one, adjoint, does it.
pub(super) fn reflector<T: Scalar>(vector: &mut [T]) -> T {
    let zero = T::Real::default();
    let first = vector[0];
    let tail = vector[1..].iter().fold(zero, |sum, value| sum + value.modulus_squared());
    if tail == zero && first == T::from_real(first.real()) {
        return T::default();
    }
    let length = (first.modulus_squared() + tail).root();
    let beta = -length.with_sign(first.real());
    let divisor = first - T::from_real(beta);
    vector[1..].iter_mut().for_each(|value| *value = *value / divisor);
    vector[0] = T::from_real(beta);
    (T::from_real(beta) - first).scale(<T::Real as Scalar>::ONE / beta)
}

/// `rows -= tau v (v' rows)` on some columns of a matrix `width` wide.
pub(super) fn reflect<T: Scalar>(
    matrix: &mut [T],
    width: usize,
    cols: std::ops::Range<usize>,
    v: &[T],
    tau: T,
    row: &mut Vec<T>,
) {
    if tau == T::default() || cols.is_empty() {
        return;
    }
    row.clear();
    row.resize(cols.len(), T::default());
    for (values, &factor) in matrix.chunks(width).zip(v) {
        subtract_scaled(row, -factor.conjugate(), &values[cols.clone()]);
    }
    for (values, &factor) in matrix.chunks_mut(width).zip(v) {
        subtract_scaled(&mut values[cols.clone()], tau * factor, row);
    }
}
