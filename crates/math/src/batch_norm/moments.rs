//! Mean and variance of every channel, in one pass over memory.
//!
//! Within a block, which stays in cache, the variance is taken about the block's own mean; blocks are then merged by
//! Chan's formula. Nothing cancels, wherever the mean lies.

use super::Normal;
use super::columns::{Columns, FEW, LANES};
use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::parallel::split_rows_mut;

/// Mean and variance (of the numbers themselves: divided by their count) of every channel.
///
/// # Panics
/// If there are no elements, or their count is not a multiple of the number of channels.
pub fn moments<T: Normal>(pool: &Pool, depth: usize, x: &[T]) -> (Vec<f32>, Vec<f32>) {
    assert!(!x.is_empty() && x.len().is_multiple_of(depth), "moments: {} elements, {depth} channels", x.len());
    let columns = Columns::new(x.len(), depth);
    let mut parts: Vec<Part> = (0..columns.parts()).map(|_| Part::new(columns.width)).collect();
    let cost = 0.4 * x.len() as f32 / parts.len() as f32;
    split_rows_mut(pool, cost, &mut parts, 1, |first, parts| {
        for (i, part) in parts.iter_mut().enumerate() {
            vectorize(PartLoop { columns, number: first + i, x, part });
        }
    });
    let mut all: Vec<Moment> = vec![Moment::default(); depth];
    for part in &parts {
        for (column, moment) in part.moments.iter().enumerate() {
            all[column % depth].merge(*moment);
        }
    }
    for (i, value) in x[columns.rest()..].iter().enumerate() {
        all[i % depth].merge(Moment { count: 1.0, mean: f64::from(value.to_sum()), squares: 0.0 });
    }
    all.iter().map(|moment| (moment.mean as f32, (moment.squares / moment.count) as f32)).unzip()
}

/// Count, mean, and sum of squared distances from the mean.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moment {
    #[inline(always)]
    fn merge(&mut self, other: Moment) {
        if other.count == 0.0 {
            return;
        }
        let count = self.count + other.count;
        let distance = other.mean - self.mean;
        self.mean += distance * (other.count / count);
        self.squares += other.squares + distance * distance * (self.count * other.count / count);
        self.count = count;
    }
}

struct Part {
    moments: Vec<Moment>,
}

impl Part {
    fn new(width: usize) -> Part {
        Part { moments: vec![Moment::default(); width] }
    }
}

struct PartLoop<'a, T> {
    columns: Columns,
    number: usize,
    x: &'a [T],
    part: &'a mut Part,
}

impl<T: Normal> Loop for PartLoop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.columns.width;
        for rows in self.columns.blocks(self.number) {
            let block = &self.x[rows.start * width..rows.end * width];
            let even = width / LANES * LANES;
            for column in (0..even).step_by(LANES) {
                add::<T, LANES>(block, width, column, &mut self.part.moments);
            }
            for column in (even..width).step_by(FEW) {
                add::<T, FEW>(block, width, column, &mut self.part.moments);
            }
        }
    }
}

/// Merges some columns of a block.
#[inline(always)]
fn add<T: Normal, const N: usize>(block: &[T], width: usize, column: usize, moments: &mut [Moment]) {
    let count = (block.len() / width) as f32;
    let mut sums = [0f32; N];
    for row in block.chunks_exact(width) {
        let row = &row[column..column + N];
        for i in 0..N {
            sums[i] += row[i].to_sum();
        }
    }
    let means = sums.map(|sum| sum / count);
    let mut squares = [0f32; N];
    // Compensated summation: the rounding error of the mean is carried along, so that the mean loses no digits.
    let mut lost = [0f32; N];
    for row in block.chunks_exact(width) {
        let row = &row[column..column + N];
        for i in 0..N {
            let distance = row[i].to_sum() - means[i];
            squares[i] += distance * distance;
            lost[i] += distance;
        }
    }
    for (i, moment) in moments[column..column + N].iter_mut().enumerate() {
        let shift = f64::from(lost[i]) / f64::from(count);
        moment.merge(Moment {
            count: count.into(),
            mean: f64::from(means[i]) + shift,
            squares: (f64::from(squares[i]) - shift * shift * f64::from(count)).max(0.0),
        });
    }
}
