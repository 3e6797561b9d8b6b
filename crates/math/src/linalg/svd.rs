//! The singular value decomposition: bidiagonal form, then implicit QR steps.

use super::qr::{reflect, reflector};
use super::{RealScalar, Scalar, adjoint, identity, rotate, swap_rows};

/// Steps for one singular value before giving up.
const LIMIT: usize = 75;

/// `a = u s v'`, singular values falling.
#[derive(Clone, Debug)]
pub struct Svd<T: Scalar> {
    /// The singular values.
    pub values: Vec<T::Real>,
    /// Left singular vectors as rows: columns of `u`, not conjugated.
    pub left: Vec<T>,
    /// Right singular vectors as rows: columns of `v`, not conjugated.
    pub right: Vec<T>,
}

/// Decomposes a matrix; of the vectors all (`full`), as many as values, or none (`vectors` false). None if the numbers are
/// not finite.
pub fn svd<T: Scalar>(matrix: &[T], rows: usize, cols: usize, vectors: bool, full: bool) -> Option<Svd<T>> {
    if rows < cols {
        let Svd { values, left, right } = svd(&adjoint(matrix, rows, cols), cols, rows, vectors, full)?;
        return Some(Svd { values, left: right, right: left });
    }
    let mut form = Bidiagonal::new(matrix, rows, cols, vectors, if full { rows } else { cols });
    if !form.diagonal.iter().chain(&form.above).all(|value| value.finite()) {
        return None;
    }
    for at in (0..cols).rev() {
        form.converge(at)?;
    }
    form.sort();
    Some(Svd { values: form.diagonal, left: form.left, right: form.right })
}

/// A real bidiagonal matrix, and the vectors that lead to it, as rows.
struct Bidiagonal<T: Scalar> {
    diagonal: Vec<T::Real>,
    /// `above[i]` stands right of diagonal element `i`.
    above: Vec<T::Real>,
    left: Vec<T>,
    right: Vec<T>,
    rows: usize,
    cols: usize,
    scale: T::Real,
}

impl<T: Scalar> Bidiagonal<T> {
    fn new(matrix: &[T], rows: usize, cols: usize, vectors: bool, width: usize) -> Bidiagonal<T> {
        let mut a = matrix.to_vec();
        let (mut diagonal, mut above) = (Vec::with_capacity(cols), Vec::with_capacity(cols));
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut scratch = Vec::new();
        for at in 0..cols {
            let mut column: Vec<T> = a[at * cols + at..].iter().step_by(cols).copied().collect();
            let tau = reflector(&mut column);
            diagonal.push(column[0].real());
            column[0] = T::ONE;
            reflect(&mut a[at * cols..], cols, at + 1..cols, &column, tau.conjugate(), &mut scratch);
            left.push((column, tau));
            if at + 1 == cols {
                continue;
            }
            // The row is reduced as a column of the adjoint.
            let mut row: Vec<T> =
                a[at * cols + at + 1..][..cols - at - 1].iter().map(|value| value.conjugate()).collect();
            let tau = reflector(&mut row);
            above.push(row[0].real());
            row[0] = T::ONE;
            reflect_right(&mut a[(at + 1) * cols..], cols, at + 1, &row, tau);
            right.push((row, tau));
        }
        let (mut u, mut v) = (Vec::new(), Vec::new());
        if vectors {
            u = columns(&left, rows, width, 0);
            v = columns(&right, cols, cols, 1);
        }
        let sizes = diagonal.iter().chain(&above).map(|value| value.magnitude());
        let scale = sizes.fold(T::Real::default(), |top, size| if size > top { size } else { top });
        Bidiagonal { diagonal, above, left: u, right: v, rows, cols, scale }
    }

    /// Steps until what stands above diagonal element `at` vanishes.
    fn converge(&mut self, at: usize) -> Option<()> {
        let zero = T::Real::default();
        for _ in 0..LIMIT {
            let tiny = T::Real::EPSILON * self.scale;
            let mut start = at;
            while start > 0 && self.above[start - 1].magnitude() > tiny {
                if self.diagonal[start - 1].magnitude() <= tiny {
                    self.cancel(start, at, tiny);
                    break;
                }
                start -= 1;
            }
            if start > 0 && start <= at && self.above[start - 1].magnitude() <= tiny {
                self.above[start - 1] = zero;
            }
            if start == at {
                if self.diagonal[at] < zero {
                    self.diagonal[at] = -self.diagonal[at];
                    let cols = self.cols;
                    self.right.iter_mut().skip(at * cols).take(cols).for_each(|value| *value = -*value);
                }
                return Some(());
            }
            self.step(start, at);
        }
        None
    }

    /// A diagonal element before `start` is zero: so can be made what stands right of it.
    fn cancel(&mut self, start: usize, end: usize, tiny: T::Real) {
        let (mut c, mut s) = (T::Real::default(), <T::Real as Scalar>::ONE);
        for i in start..=end {
            let f = s * self.above[i - 1];
            self.above[i - 1] = c * self.above[i - 1];
            if f.magnitude() <= tiny {
                break;
            }
            let g = self.diagonal[i];
            let h = f.diagonal(g);
            self.diagonal[i] = h;
            (c, s) = (g / h, -f / h);
            self.turn_left(start - 1, i, c, s);
        }
    }

    fn turn_left(&mut self, a: usize, b: usize, c: T::Real, s: T::Real) {
        if !self.left.is_empty() {
            rotate(&mut self.left, self.rows, (a, b), c, s);
        }
    }

    fn turn_right(&mut self, a: usize, b: usize, c: T::Real, s: T::Real) {
        if !self.right.is_empty() {
            rotate(&mut self.right, self.cols, (a, b), c, s);
        }
    }

    /// One implicit step on the block `start ..= end`, with the shift of its last corner.
    fn step(&mut self, start: usize, end: usize) {
        let (zero, one, two) = (T::Real::default(), <T::Real as Scalar>::ONE, T::Real::of(2.0));
        let (first, last, before) = (self.diagonal[start], self.diagonal[end], self.diagonal[end - 1]);
        let (h, g) = (self.above[end - 1], if end >= start + 2 { self.above[end - 2] } else { zero });
        let mut f = ((before - last) * (before + last) + (g - h) * (g + h)) / (two * h * before);
        let root = f.diagonal(one).with_sign(f);
        f = ((first - last) * (first + last) + h * (before / (f + root) - h)) / first;
        let (mut c, mut s, mut x) = (one, one, first);
        for i in start..end {
            let (mut g, mut y) = (c * self.above[i], self.diagonal[i + 1]);
            let h = s * self.above[i];
            let length = f.diagonal(h);
            if i > start {
                self.above[i - 1] = length;
            }
            (c, s) = if length == zero { (one, zero) } else { (f / length, h / length) };
            f = x * c + g * s;
            g = g * c - x * s;
            let h = y * s;
            y = y * c;
            self.turn_right(i, i + 1, c, s);
            let length = f.diagonal(h);
            self.diagonal[i] = length;
            if length != zero {
                (c, s) = (f / length, h / length);
            }
            f = c * g + s * y;
            x = c * y - s * g;
            self.turn_left(i, i + 1, c, s);
        }
        self.above[end - 1] = f;
        self.diagonal[end] = x;
    }

    /// Brings the values into falling order, their vectors with them.
    fn sort(&mut self) {
        for at in 0..self.cols {
            let largest =
                (at..self.cols).fold(at, |top, i| if self.diagonal[i] > self.diagonal[top] { i } else { top });
            self.diagonal.swap(at, largest);
            if !self.left.is_empty() {
                swap_rows(&mut self.left, self.rows, at, largest);
                swap_rows(&mut self.right, self.cols, at, largest);
            }
        }
    }
}

/// `rows -= (rows v) tau v'` on the columns from `first` on.
fn reflect_right<T: Scalar>(matrix: &mut [T], width: usize, first: usize, v: &[T], tau: T) {
    if tau == T::default() {
        return;
    }
    for row in matrix.chunks_exact_mut(width) {
        let row = &mut row[first..];
        let dot = row.iter().zip(v).fold(T::default(), |sum, (&value, &v)| sum + value * v) * tau;
        row.iter_mut().zip(v).for_each(|(value, v)| *value = *value - dot * v.conjugate());
    }
}

/// The columns of a product of reflections as rows; reflection `i` starts at row `i + skip`.
fn columns<T: Scalar>(reflections: &[(Vec<T>, T)], rows: usize, width: usize, skip: usize) -> Vec<T> {
    let mut q = identity::<T>(rows, width);
    let mut scratch = Vec::new();
    for (at, (v, tau)) in reflections.iter().enumerate().rev() {
        reflect(&mut q[(at + skip) * width..], width, 0..width, v, *tau, &mut scratch);
    }
    (0..rows * width).map(|place| q[place % rows * width + place / rows]).collect()
}
