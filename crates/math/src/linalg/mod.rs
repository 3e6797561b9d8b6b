//! Factorisations and solvers of dense matrices, which lie row by row in slices.

mod cholesky;
mod eigen;
mod function;
mod lu;
mod qr;
mod scalar;
mod schur;
mod svd;
mod triangular;

pub use cholesky::cholesky;
pub use eigen::self_adjoint_eigen;
pub use function::{exponential, logarithm, square_root};
pub use lu::{Lu, lu};
pub use qr::{Qr, qr};
pub use scalar::{RealScalar, Scalar};
pub use schur::{Schur, eigenvectors, schur};
pub use svd::{Svd, svd};
pub use triangular::{solve_lower, solve_upper};

/// `dst -= factor src`.
#[inline]
pub(crate) fn subtract_scaled<T: Scalar>(dst: &mut [T], factor: T, src: &[T]) {
    for (dst, &src) in dst.iter_mut().zip(src) {
        *dst = *dst - factor * src;
    }
}

/// `dst -= src`.
#[inline]
pub(crate) fn subtract<T: Scalar>(dst: &mut [T], src: &[T]) {
    for (dst, &src) in dst.iter_mut().zip(src) {
        *dst = *dst - src;
    }
}

/// The matrix with rows and columns exchanged and every number conjugated.
pub fn adjoint<T: Scalar>(values: &[T], rows: usize, cols: usize) -> Vec<T> {
    let mut result = vec![T::default(); values.len()];
    for row in 0..rows {
        for col in 0..cols {
            result[col * rows + row] = values[row * cols + col].conjugate();
        }
    }
    result
}

/// The unit matrix, or as much of it as fits.
pub fn identity<T: Scalar>(rows: usize, cols: usize) -> Vec<T> {
    let mut result = vec![T::default(); rows * cols];
    result.iter_mut().step_by(cols + 1).take(rows.min(cols)).for_each(|value| *value = T::ONE);
    result
}

/// Exchanges two rows of `width` numbers.
pub(crate) fn swap_rows<T>(values: &mut [T], width: usize, a: usize, b: usize) {
    if a != b {
        let (low, high) = values.split_at_mut(a.max(b) * width);
        low[a.min(b) * width..][..width].swap_with_slice(&mut high[..width]);
    }
}

/// Turns two rows by an angle: `x = c x + s y`, `y = c y - s x`.
#[inline]
pub(crate) fn rotate<T: Scalar>(values: &mut [T], width: usize, (a, b): (usize, usize), c: T::Real, s: T::Real) {
    let (low, high) = values.split_at_mut(a.max(b) * width);
    let (first, second) = (&mut low[a.min(b) * width..][..width], &mut high[..width]);
    let (x, y) = if a < b { (first, second) } else { (second, first) };
    for (x, y) in x.iter_mut().zip(y) {
        let (old_x, old_y) = (*x, *y);
        *x = old_x.scale(c) + old_y.scale(s);
        *y = old_y.scale(c) - old_x.scale(s);
    }
}
