//! Draws classes by weights, which are fixed or learned from the true classes.

use super::words::Words;
use crate::checkpoint::systems;
use io::FileSystems;
use op::Setup;
use status::{Result, invalid};
use tensor::Tensor;

/// Counts of classes, one each at the start: a tree of partial sums, so that drawing and counting take logarithmic
/// time.
pub(crate) struct Learned {
    /// Sums over ranges of classes, as in Fenwick's tree; a tensor, so that a range no memory could hold is refused.
    sums: Tensor,
    total: i32,
}

impl Learned {
    /// Classes below `range`.
    pub fn new(range: u64) -> Result<Learned> {
        let total = i32::try_from(range).ok().filter(|&range| range < i32::MAX);
        let total = total.ok_or_else(|| invalid!("range_max {range} is too large for a learned sampler"))?;
        let mut sums = Tensor::zeros::<i32>([range as usize + 1])?;
        for (i, sum) in sums.values_mut::<i32>()?.iter_mut().enumerate().skip(1) {
            *sum = (i & i.wrapping_neg()) as i32;
        }
        Ok(Learned { sums, total })
    }

    /// A class, as likely as it was often counted.
    pub fn sample(&self, words: &mut Words<impl Iterator<Item = u32>>) -> u64 {
        let sums = self.sums.values::<i32>().unwrap_or_default();
        let mut left = words.below(self.total as u32) as i32;
        let (mut class, mut step) = (0, sums.len().next_power_of_two() / 2);
        while step > 0 {
            if class + step < sums.len() && sums[class + step] <= left {
                class += step;
                left -= sums[class];
            }
            step /= 2;
        }
        class as u64
    }

    /// How likely a class is.
    pub fn probability(&self, class: u64) -> f32 {
        let sums = self.sums.values::<i32>().unwrap_or_default();
        let upto = |mut end: usize| {
            let mut sum = 0;
            while end > 0 {
                sum += sums[end];
                end &= end - 1;
            }
            sum
        };
        let class = class as usize;
        (upto(class + 1) - upto(class)) as f32 / self.total as f32
    }

    /// Counts classes, which are all in range.
    pub fn learn(&mut self, classes: &[i64]) {
        let room = (i32::MAX - self.total) as usize;
        let Ok(sums) = self.sums.values_mut::<i32>() else { return };
        for &class in classes.iter().take(room) {
            let mut place = class as usize + 1;
            while place < sums.len() {
                sums[place] += 1;
                place += place & place.wrapping_neg();
            }
            self.total += 1;
        }
    }
}

/// Weights of classes, drawn by Walker's alias method: each class shares its column with one other at most.
pub(crate) struct Fixed {
    weights: Vec<f32>,
    total: f32,
    columns: Vec<(f32, u32)>,
}

impl Fixed {
    /// The weights from a node's attributes, or from the file named there.
    pub fn new(setup: &Setup<'_>, range: u64) -> Result<Fixed> {
        let (file, unigrams) = (setup.string("vocab_file")?, &setup.list("unigrams")?.floats);
        if file.is_empty() && unigrams.is_empty() {
            return Err(invalid!("Must provide either vocab_file or unigrams."));
        }
        if !file.is_empty() && !unigrams.is_empty() {
            return Err(invalid!("Must only provide one of vocab_file and unigrams."));
        }
        let given = if file.is_empty() { unigrams.clone() } else { read(&*systems(setup)?, &file)? };
        let (shards, shard) = (setup.int("num_shards")?.max(1), setup.int("shard")?);
        let mine = |id: i64| id % shards == shard;
        let reserved = setup.int("num_reserved_ids")?.clamp(0, range as i64);
        let mut weights: Vec<f32> = (0..reserved).filter(|&id| mine(id)).map(|_| 0.0).collect();
        let (first, distortion) = (weights.len() as i64, setup.float("distortion")?);
        let shared = (first..).zip(&given).filter(|&(id, _)| mine(id)).map(|(_, weight)| weight.powf(distortion));
        weights.extend(shared);
        if weights.len() as u64 != range {
            return Err(invalid!("range is {range} must be equal to weights size  {}", weights.len()));
        }
        Ok(Fixed::of_weights(weights))
    }

    /// One class for each weight.
    pub fn of_weights(weights: Vec<f32>) -> Fixed {
        let total = weights.iter().fold(0.0, |sum, weight| sum + weight);
        Fixed { columns: columns(&weights), weights, total }
    }

    /// The number of classes.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// A class, with a probability proportional to its weight.
    pub fn sample(&self, words: &mut Words<impl Iterator<Item = u32>>) -> u64 {
        let height = words.float();
        let column = words.below(self.columns.len() as u32);
        let (limit, other) = self.columns.get(column as usize).copied().unwrap_or((1.0, 0));
        u64::from(if height < limit { column } else { other })
    }

    /// How likely a class is.
    pub fn probability(&self, class: u64) -> f32 {
        self.weights.get(class as usize).map_or(0.0, |weight| weight / self.total)
    }
}

/// The last field of each line of a file of comma-separated values.
fn read(systems: &FileSystems, file: &str) -> Result<Vec<f32>> {
    let bytes = systems.read(file)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| invalid!("{file} is not text"))?;
    let weight = |line: &str| {
        let field = line.rsplit(',').next().unwrap_or_default();
        field.trim().parse().map_err(|_| invalid!("Wrong vocabulary format at line: {line}"))
    };
    text.lines().map(weight).collect()
}

fn columns(weights: &[f32]) -> Vec<(f32, u32)> {
    let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
    let mut heights: Vec<f64> = weights.iter().map(|&w| f64::from(w) * weights.len() as f64 / sum).collect();
    let mut columns: Vec<(f32, u32)> = (0..weights.len() as u32).map(|column| (1.0, column)).collect();
    let all = 0..weights.len();
    let (mut low, mut high): (Vec<usize>, Vec<usize>) = all.partition(|&column| heights[column] < 1.0);
    while let (Some(&short), Some(&tall)) = (low.last(), high.last()) {
        low.pop();
        high.pop();
        columns[short] = (heights[short] as f32, tall as u32);
        heights[tall] -= 1.0 - heights[short];
        if heights[tall] < 1.0 { low.push(tall) } else { high.push(tall) }
    }
    columns
}
