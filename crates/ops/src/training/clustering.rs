//! Clusters of points: the nearest centers, and the choice of first centers by k-means++ and by a Markov chain.

use crate::random::words::Words;
use math::gemm::{Matrix, matmul};
use math::parallel::split_rows_mut;
use math::philox::Philox;
use op::shapes::{scalar, unknown};
use op::{Ctx, Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, many, outputs};
use rustc_hash::FxHashSet;
use status::{Result, invalid};
use tensor::{Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "NearestNeighbors(points: float, centers: float, k: int64) -> nearest_center_indices: int64, \
              nearest_center_distances: float",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: |_| Ok(many(nearest).heavy()),
        facts: PLAIN,
    },
    Op {
        def: "KmeansPlusPlusInitialization(points: float, num_to_sample: int64, seed: int64, \
              num_retries_per_sample: int64) -> samples: float",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: |_| Ok(many(plus_plus).heavy()),
        facts: PLAIN,
    },
    Op {
        def: "KMC2ChainInitialization(distances: float, seed: int64) -> index: int64",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: chain_kernel,
        facts: PLAIN,
    },
];

/// Products of points and centers that are held at once.
const BLOCK: usize = 1 << 20;
/// A point that is drawn more often than this without a result is replaced by the first that was not drawn.
const MOST_DRAWS: usize = 1 << 20;

/// Points in rows, with half of the squared norm of each.
struct Points<'a> {
    values: &'a [f32],
    width: usize,
    halves: Vec<f32>,
}

impl<'a> Points<'a> {
    fn new(tensor: &'a Tensor, name: &str) -> Result<Points<'a>> {
        let &[rows, width] = tensor.shape().dims() else { return Err(invalid!("Input {name} should be a matrix.")) };
        if width == 0 {
            return Err(invalid!("Input {name} should have at least one column."));
        }
        let values = tensor.values::<f32>()?;
        let half = |row: usize| 0.5 * values[row * width..][..width].iter().map(|value| value * value).sum::<f32>();
        Ok(Points { values, width, halves: (0..rows).map(half).collect() })
    }

    fn len(&self) -> usize {
        self.halves.len()
    }

    fn row(&self, row: usize) -> &'a [f32] {
        &self.values[row * self.width..][..self.width]
    }

    /// The inner products of some rows with all rows of `others`.
    fn products(&self, ctx: &Ctx<'_>, rows: std::ops::Range<usize>, others: &[f32]) -> Vec<f32> {
        let count = others.len() / self.width;
        let mut products = vec![0.0; rows.len() * count];
        if !products.is_empty() {
            let own = &self.values[rows.start * self.width..rows.end * self.width];
            let others = Matrix::new(others, count, self.width).transposed();
            matmul(ctx.pool(), Matrix::new(own, rows.len(), self.width), others, &mut products);
        }
        products
    }
}

fn integer(tensor: &Tensor, name: &str) -> Result<i64> {
    match tensor.shape().rank() {
        0 => tensor.to_scalar(),
        _ => Err(invalid!("Input {name} should be a scalar.")),
    }
}

fn nearest(ctx: &Ctx<'_>, mut inputs: Inputs) -> Result<Outputs> {
    let (points, centers, k) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let (points, centers, k) = (Points::new(&points, "points")?, Points::new(&centers, "centers")?, integer(&k, "k")?);
    if points.len() == 0 {
        return Err(invalid!("Expected points.rows() > 0."));
    }
    if points.width != centers.width {
        return Err(invalid!("Expected point_dimensions == center_dimensions: {} vs {}.", points.width, centers.width));
    }
    let shape = Shape::checked(&[points.len() as i64, k.min(centers.len() as i64)])?;
    let (mut indices, mut distances) = (Tensor::scratch::<i64>(&shape)?, Tensor::scratch::<f32>(&shape)?);
    if shape[1] > 0 {
        nearest_of_all(ctx, &points, &centers, shape[1], indices.values_mut()?, distances.values_mut()?);
    }
    Ok(outputs![indices, distances])
}

/// The numbers and the squared distances of the `k` nearest centers of each point.
fn nearest_of_all(
    ctx: &Ctx<'_>,
    points: &Points<'_>,
    centers: &Points<'_>,
    k: usize,
    indices: &mut [i64],
    distances: &mut [f32],
) {
    let rows = (BLOCK / centers.len()).max(16);
    let blocks = indices.chunks_mut(rows * k).zip(distances.chunks_mut(rows * k));
    for (block, (indices, distances)) in blocks.enumerate() {
        let found = nearest_of_block(ctx, points, centers, k, block * rows..block * rows + indices.len() / k);
        for ((index, distance), found) in indices.iter_mut().zip(distances).zip(found) {
            (*distance, *index) = found;
        }
    }
}

fn nearest_of_block(
    ctx: &Ctx<'_>,
    points: &Points<'_>,
    centers: &Points<'_>,
    k: usize,
    rows: std::ops::Range<usize>,
) -> Vec<(f32, i64)> {
    let mut found = vec![(0.0, 0); rows.len() * k];
    let products = points.products(ctx, rows.clone(), centers.values);
    split_rows_mut(ctx.pool(), centers.len() as f32 * 3.0, &mut found, k, |start, chunk| {
        for (row, to) in chunk.chunks_exact_mut(k).enumerate() {
            let products = &products[(start + row) * centers.len()..][..centers.len()];
            nearest_of_one(points.halves[rows.start + start + row], products, &centers.halves, to);
        }
    });
    found
}

fn nearest_of_one(half: f32, products: &[f32], halves: &[f32], to: &mut [(f32, i64)]) {
    let partial = halves.iter().zip(products).map(|(half, product)| half - product);
    let mut all: Vec<(f32, i64)> = partial.zip(0..).collect();
    let by_distance = |a: &(f32, i64), b: &(f32, i64)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if to.len() < all.len() {
        all.select_nth_unstable_by(to.len(), by_distance);
        all.truncate(to.len());
    }
    all.sort_unstable_by(by_distance);
    for (to, (partial, index)) in to.iter_mut().zip(all) {
        *to = (2.0 * (half + partial), index);
    }
}

fn plus_plus(ctx: &Ctx<'_>, mut inputs: Inputs) -> Result<Outputs> {
    let points = inputs.tensor(0)?;
    let points = Points::new(&points, "points")?;
    let count = integer(&inputs.tensor(1)?, "num_to_sample")?;
    let seed = integer(&inputs.tensor(2)?, "seed")?;
    let retries = integer(&inputs.tensor(3)?, "num_retries_per_sample")?;
    if points.len() == 0 {
        return Err(invalid!("Expected points.rows() > 0."));
    }
    if count <= 0 {
        return Err(invalid!("Expected num_to_sample > 0."));
    }
    if count > points.len() as i64 {
        return Err(invalid!("Expected num_to_sample <= points.rows(). {count} vs {}.", points.len()));
    }
    let retries = if retries >= 0 { retries } else { 2 + (count as f64).ln() as i64 };
    let chosen = choose(ctx, &points, count as usize, retries, &Philox::new(seed as u64, 0))?;
    let rows: Vec<f32> = chosen.iter().flat_map(|&row| points.row(row)).copied().collect();
    Ok(outputs![Tensor::from_slice([count as usize, points.width], &rows)?])
}

/// Draws `count` points, each with a probability that grows with its squared distance to the nearest one drawn before.
/// With retries each is the best of several, by the sum of the distances that it leaves.
/// A number of retries that never ends is cancelled with the step.
fn choose(ctx: &Ctx<'_>, points: &Points<'_>, count: usize, retries: i64, random: &Philox) -> Result<Vec<usize>> {
    let mut words = Words::new(random.words(0));
    let (mut chosen, mut known) = (Vec::with_capacity(count), FxHashSet::default());
    let mut nearest = vec![f32::INFINITY; points.len()];
    while chosen.len() < count {
        let sums: Vec<f32> = nearest.iter().scan(0.0, |sum, distance| Some(add(sum, *distance))).collect();
        let (mut best, mut best_sum, mut best_nearest) = (0, f32::INFINITY, None);
        for _ in 0..=retries {
            ctx.env.cancel.reason().map_or(Ok(()), Err)?;
            let row = draw(&mut words, &sums, &known);
            let distances = distances(ctx, points, row, &nearest);
            let sum = distances.iter().sum::<f32>();
            if retries == 0 || sum < best_sum {
                (best, best_sum, best_nearest) = (row, sum, Some(distances));
            }
        }
        nearest = best_nearest.unwrap_or(nearest);
        known.insert(best);
        chosen.push(best);
    }
    Ok(chosen)
}

fn add(sum: &mut f32, value: f32) -> f32 {
    *sum += value;
    *sum
}

/// A point that was not drawn before, by the sums of the distances up to each point.
fn draw(words: &mut Words<impl Iterator<Item = u32>>, sums: &[f32], known: &FxHashSet<usize>) -> usize {
    if known.is_empty() {
        return words.below64(sums.len() as u64) as usize;
    }
    let total = sums.last().copied().unwrap_or_default();
    for _ in 0..MOST_DRAWS {
        let height = words.float() * total;
        let row = sums.partition_point(|&sum| !(height < sum));
        if !known.contains(&row) {
            return row.min(sums.len() - 1);
        }
    }
    (0..sums.len()).find(|row| !known.contains(row)).unwrap_or(0)
}

/// Half of the squared distance of each point to point `row`, or to the nearest one before if that is less.
fn distances(ctx: &Ctx<'_>, points: &Points<'_>, row: usize, nearest: &[f32]) -> Vec<f32> {
    let products = points.products(ctx, 0..points.len(), points.row(row));
    let distance = |(half, product): (&f32, f32)| half - product + points.halves[row];
    let distances = points.halves.iter().zip(products).map(distance);
    distances.zip(nearest).map(|(distance, &nearest)| if distance < nearest { distance } else { nearest }).collect()
}

fn chain_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let distances = inputs.tensor(0)?;
        if distances.shape().rank() != 1 {
            return Err(invalid!("Input distances should be a vector."));
        }
        let seed = integer(&inputs.tensor(1)?, "seed")?;
        let distances = distances.values::<f32>()?;
        if distances.is_empty() {
            return Err(invalid!("Expected distances_tensor.size() > 0."));
        }
        Ok(outputs![Tensor::scalar(chain(distances, &Philox::new(seed as u64, 0)) as i64)])
    }))
}

/// The last state of a Markov chain, which moves to the next point with the quotient of the distances as probability.
fn chain(distances: &[f32], random: &Philox) -> usize {
    let mut words = Words::new(random.words(0));
    let mut state = 0;
    for (next, &distance) in distances.iter().enumerate().skip(1) {
        if distance > words.float() * distances[state] {
            state = next;
        }
    }
    state
}
