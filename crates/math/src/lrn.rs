//! Local response normalisation: every element divided by a power of the squares around it, row by row.

use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::function::Real;
use crate::parallel::split_rows_mut;
use crate::reduce::Accumulate;

/// `y = x (bias + alpha Σ x²)^-beta`, the sum running over `radius` neighbours to each side.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    /// Neighbours to each side.
    pub radius: usize,
    /// Added to the sum.
    pub bias: f32,
    /// Factor of the sum.
    pub alpha: f32,
    /// The power.
    pub beta: f32,
}

/// Writes the normalised rows of `x`.
///
/// # Panics
/// If the lengths are not equal.
pub fn normalize<T: Accumulate<Sum = f32>>(pool: &Pool, response: Response, width: usize, x: &[T], y: &mut [T]) {
    assert_eq!(x.len(), y.len(), "local response: lengths");
    split_rows_mut(pool, response.cost(width), y, width.max(1), |first, y| {
        let mut scratch = Scratch::new(width);
        for (i, y) in y.chunks_exact_mut(width).enumerate() {
            let x = &x[(first + i) * width..][..width];
            vectorize(Forward { response, x, y, scratch: &mut scratch });
        }
    });
}

/// Writes the derivative by `x` of rows whose result was `y`, given the gradient `dy` of that.
///
/// # Panics
/// If the lengths are not equal.
pub fn grad<T: Accumulate<Sum = f32>>(
    pool: &Pool,
    response: Response,
    width: usize,
    dy: &[T],
    x: &[T],
    y: &[T],
    dx: &mut [T],
) {
    assert!([dy.len(), x.len(), y.len()].iter().all(|&len| len == dx.len()), "local response gradient: lengths");
    split_rows_mut(pool, 2.0 * response.cost(width), dx, width.max(1), |first, dx| {
        let mut scratch = Scratch::new(width);
        for (i, dx) in dx.chunks_exact_mut(width).enumerate() {
            let at = (first + i) * width;
            let (dy, x, y) = (&dy[at..][..width], &x[at..][..width], &y[at..][..width]);
            vectorize(Backward { response, dy, x, y, dx, scratch: &mut scratch });
        }
    });
}

impl Response {
    fn cost(&self, width: usize) -> f32 {
        width as f32 * (2.0 + 0.1 * self.radius.min(width) as f32)
    }

    /// `norm^-beta`.
    #[inline(always)]
    fn power(&self, norm: f32) -> f32 {
        if self.beta == 1.0 {
            1.0 / norm
        } else if self.beta == 0.5 {
            1.0 / norm.sqrt()
        } else {
            Real::exp(-self.beta * Real::log(norm))
        }
    }
}

struct Scratch {
    terms: Vec<f32>,
    sums: Vec<f32>,
}

impl Scratch {
    fn new(width: usize) -> Scratch {
        Scratch { terms: vec![0.0; width], sums: vec![0.0; width] }
    }

    /// Sets each sum to that of the terms around it.
    #[inline(always)]
    fn add_up(&mut self, radius: usize) {
        let width = self.terms.len();
        self.sums.copy_from_slice(&self.terms);
        for step in 1..=radius.min(width.saturating_sub(1)) {
            let (left, right) = (&self.terms[..width - step], &self.terms[step..]);
            self.sums[step..].iter_mut().zip(left).for_each(|(sum, term)| *sum += term);
            self.sums[..width - step].iter_mut().zip(right).for_each(|(sum, term)| *sum += term);
        }
    }
}

struct Forward<'a, T> {
    response: Response,
    x: &'a [T],
    y: &'a mut [T],
    scratch: &'a mut Scratch,
}

impl<T: Accumulate<Sum = f32>> Loop for Forward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Forward { response, x, y, scratch } = self;
        scratch.terms.iter_mut().zip(x).for_each(|(term, x)| *term = x.to_sum() * x.to_sum());
        scratch.add_up(response.radius);
        for ((y, x), sum) in y.iter_mut().zip(x).zip(&scratch.sums) {
            *y = T::from_sum(x.to_sum() * response.power(response.bias + response.alpha * sum));
        }
    }
}

struct Backward<'a, T> {
    response: Response,
    dy: &'a [T],
    x: &'a [T],
    y: &'a [T],
    dx: &'a mut [T],
    scratch: &'a mut Scratch,
}

impl<T: Accumulate<Sum = f32>> Loop for Backward<'_, T> {
    type Output = ();

    /// With n the norms:  dx = dy n^-β - 2 α β x Σ dy y / n.
    #[inline(always)]
    fn run(self) {
        let Backward { response, dy, x, y, dx, scratch } = self;
        scratch.terms.iter_mut().zip(x).for_each(|(term, x)| *term = x.to_sum() * x.to_sum());
        scratch.add_up(response.radius);
        let norm = |sum: f32| response.bias + response.alpha * sum;
        let mut direct = vec![0f32; dx.len()];
        for i in 0..dx.len() {
            let norm = norm(scratch.sums[i]);
            direct[i] = dy[i].to_sum() * response.power(norm);
            scratch.terms[i] = dy[i].to_sum() * y[i].to_sum() / norm;
        }
        scratch.add_up(response.radius);
        let factor = -2.0 * response.alpha * response.beta;
        for i in 0..dx.len() {
            dx[i] = T::from_sum(direct[i] + factor * x[i].to_sum() * scratch.sums[i]);
        }
    }
}
