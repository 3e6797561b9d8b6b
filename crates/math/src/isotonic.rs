//! Isotonic regression: the nearest row of numbers that never rise, by pooling adjacent violators (Kruskal, 1964).

use crate::Pool;
use crate::function::Real;
use crate::parallel::{Shared, split};

/// Nanoseconds for a number: it is pooled once and written once.
const COST: f32 = 4.0;

/// A run of places that share one value, the mean of what stood there.
struct Block<T> {
    len: usize,
    sum: T,
    mean: T,
}

/// Replaces each row of `values` by the nearest one, in squares, that never rises; `blocks` gets the number of the block
/// of equal values that each place is in, counted from 0 in every row.
pub fn isotonic<T: Real>(pool: &Pool, width: usize, values: &mut [T], blocks: &mut [i32]) {
    assert_eq!(values.len(), blocks.len(), "isotonic: {} values and {} blocks", values.len(), blocks.len());
    if width == 0 || values.is_empty() {
        return;
    }
    assert_eq!(values.len() % width, 0, "isotonic: {} values cannot be split into rows of {width}", values.len());
    let rows = values.len() / width;
    let (values, blocks) = (Shared::new(values), Shared::new(blocks));
    split(pool, rows, COST * width as f32, 1, |rows| {
        let mut pooled = Vec::new();
        for row in rows {
            let places = row * width..(row + 1) * width;
            // SAFETY: `split` hands out disjoint ranges of rows, and both slices are whole rows, checked above.
            let (values, blocks) = unsafe { (values.range(places.clone()), blocks.range(places)) };
            solve(values, blocks, &mut pooled);
        }
    });
}

fn solve<T: Real>(values: &mut [T], blocks: &mut [i32], pooled: &mut Vec<Block<T>>) {
    pooled.clear();
    for &value in values.iter() {
        let mut last = Block { len: 1, sum: value, mean: value };
        while let Some(before) = pooled.pop_if(|before| last.mean > before.mean) {
            let (len, sum) = (before.len + last.len, before.sum.add(last.sum));
            last = Block { len, sum, mean: sum.div(T::from_f64(len as f64)) };
        }
        pooled.push(last);
    }
    let mut start = 0;
    for (number, block) in pooled.iter().enumerate() {
        values[start..start + block.len].fill(block.mean);
        blocks[start..start + block.len].fill(number as i32);
        start += block.len;
    }
}
