//! The derivative: sums over the batch in one pass, the gradient of the input in another.

use super::columns::{Columns, FEW, LANES};
use super::{Normal, WIDE};
use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::parallel::split_rows_mut;

/// Sums by channel.
#[derive(Clone, Debug)]
pub struct GradSums {
    /// Of the gradients.
    pub grad: Vec<f32>,
    /// Of gradients times the distance of their input from the mean.
    pub product: Vec<f32>,
}

/// `Σ dy` and `Σ dy (x - mean)` of every channel.
///
/// # Panics
/// If the lengths are inconsistent.
pub fn grad_sums<T: Normal>(pool: &Pool, dy: &[T], x: &[T], mean: &[f32]) -> GradSums {
    let depth = mean.len();
    assert_eq!(dy.len(), x.len(), "batch norm gradient: lengths");
    if x.is_empty() {
        return GradSums { grad: vec![0.0; depth], product: vec![0.0; depth] };
    }
    assert!(x.len().is_multiple_of(depth), "batch norm gradient: {} elements, {depth} channels", x.len());
    let columns = Columns::new(x.len(), depth);
    let means = mean.repeat(columns.width / depth);
    let mut parts = vec![[Vec::new(), Vec::new()]; columns.parts()];
    let cost = 0.6 * x.len() as f32 / parts.len() as f32;
    split_rows_mut(pool, cost, &mut parts, 1, |first, parts| {
        for (i, sums) in parts.iter_mut().enumerate() {
            *sums = [vec![0f64; columns.width], vec![0f64; columns.width]];
            vectorize(PartLoop { columns, number: first + i, dy, x, mean: &means, sums });
        }
    });
    let mut totals = [vec![0f64; depth], vec![0f64; depth]];
    for part in &parts {
        for (total, sums) in totals.iter_mut().zip(part) {
            sums.iter().enumerate().for_each(|(column, sum)| total[column % depth] += sum);
        }
    }
    let rest = columns.rest();
    for (i, (dy, x)) in dy[rest..].iter().zip(&x[rest..]).enumerate() {
        totals[0][i % depth] += f64::from(dy.to_sum());
        totals[1][i % depth] += f64::from(dy.to_sum() * (x.to_sum() - mean[i % depth]));
    }
    let [grad, product] = totals.map(|total| total.iter().map(|&sum| sum as f32).collect());
    GradSums { grad, product }
}

struct PartLoop<'a, T> {
    columns: Columns,
    number: usize,
    dy: &'a [T],
    x: &'a [T],
    mean: &'a [f32],
    sums: &'a mut [Vec<f64>; 2],
}

impl<T: Normal> Loop for PartLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.columns.width;
        for rows in self.columns.blocks(self.number) {
            let range = rows.start * width..rows.end * width;
            let (dy, x) = (&self.dy[range.clone()], &self.x[range]);
            let even = width / LANES * LANES;
            for column in (0..even).step_by(LANES) {
                add::<T, LANES>(dy, x, width, column, self.mean, self.sums);
            }
            for column in (even..width).step_by(FEW) {
                add::<T, FEW>(dy, x, width, column, self.mean, self.sums);
            }
        }
    }
}

#[inline(always)]
fn add<T: Normal, const N: usize>(
    dy: &[T],
    x: &[T],
    width: usize,
    column: usize,
    mean: &[f32],
    totals: &mut [Vec<f64>; 2],
) {
    let mut means = [0f32; N];
    means.copy_from_slice(&mean[column..column + N]);
    let (mut grads, mut products) = ([0f32; N], [0f32; N]);
    for (dy, x) in dy.chunks_exact(width).zip(x.chunks_exact(width)) {
        let (dy, x) = (&dy[column..column + N], &x[column..column + N]);
        for i in 0..N {
            let dy = dy[i].to_sum();
            grads[i] += dy;
            products[i] += dy * (x[i].to_sum() - means[i]);
        }
    }
    for i in 0..N {
        totals[0][column + i] += f64::from(grads[i]);
        totals[1][column + i] += f64::from(products[i]);
    }
}

/// `dx = dy * a + (x - mean) * b + c`, each by channel.
///
/// # Panics
/// If the lengths are inconsistent.
pub fn grad_input<T: Normal>(pool: &Pool, dy: &[T], x: &[T], mean: &[f32], [a, b, c]: [&[f32]; 3], dx: &mut [T]) {
    let depth = mean.len();
    assert!(dy.len() == dx.len() && x.len() == dx.len(), "batch norm gradient: lengths");
    assert!([a, b, c].iter().all(|by| by.len() == depth), "batch norm gradient: numbers of channels");
    if dx.is_empty() {
        return;
    }
    assert!(x.len().is_multiple_of(depth), "batch norm gradient: {} elements, {depth} channels", x.len());
    let times = WIDE.div_ceil(depth);
    let [mean, a, b, c] = [mean, a, b, c].map(|by| by.repeat(times));
    let width = mean.len();
    split_rows_mut(pool, 0.6 * width as f32, dx, width, |row, dx| {
        let range = row * width..row * width + dx.len();
        vectorize(Input { dy: &dy[range.clone()], x: &x[range], mean: &mean, a: &a, b: &b, c: &c, dx });
    });
}

struct Input<'a, T> {
    dy: &'a [T],
    x: &'a [T],
    mean: &'a [f32],
    a: &'a [f32],
    b: &'a [f32],
    c: &'a [f32],
    dx: &'a mut [T],
}

impl<T: Normal> Loop for Input<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.mean.len();
        for ((dx, dy), x) in self.dx.chunks_mut(width).zip(self.dy.chunks(width)).zip(self.x.chunks(width)) {
            let len = dx.len();
            let (mean, a, b, c) = (&self.mean[..len], &self.a[..len], &self.b[..len], &self.c[..len]);
            for i in 0..len {
                dx[i] = T::from_sum(dy[i].to_sum() * a[i] + (x[i].to_sum() - mean[i]) * b[i] + c[i]);
            }
        }
    }
}
