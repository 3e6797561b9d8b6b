//! Samples of binomial distributions.

use super::generator::{check_algorithm, take_blocks};
use super::sampler::{Sampled, doubles, draw_from, ending_with};
use super::stream::{Source, from_seed};
use graph::{Output, ShapeQuery};
use math::elementwise::Broadcast;
use math::philox::{Philox, RESERVED_BLOCKS};
use op::shapes::shape_from_input;
use op::{Ctx, Grad, Home, Kernel, Op, PLAIN, Setup, Variable, handle_of, many, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "StatelessRandomBinomial(shape: S, seed: Tseed, counts: T, probs: T) -> output: dtype; S: {int32, \
              int64}; Tseed: {int32, int64} = int64; T: {half, float, double, int32, int64} = double; dtype: {half, \
              float, double, int32, int64} = int64",
        shape: super::draw::from_shape,
        grad: Grad::Stop,
        kernel: stateless_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatefulRandomBinomial(resource: resource, algorithm: int64, shape: S, counts: T, probs: T) -> \
              output: dtype; S: {int32, int64}; T: {half, float, double, int32, int64} = double; dtype: {half, \
              float, double, int32, int64} = int64; stateful",
        shape: third_shape,
        grad: Grad::Stop,
        kernel: stateful_kernel,
        facts: PLAIN,
    },
];

/// `shape` samples of binomial distributions: how many of `counts` trials succeed, each with `probs`.
pub fn stateless_random_binomial(
    shape: &Output,
    seed: &Output,
    counts: &Output,
    probs: &Output,
    dtype: DType,
) -> Output {
    let op = shape.scope().op("StatelessRandomBinomial").input(shape).input(seed).input(counts).input(probs);
    op.attr("dtype", dtype).output()
}

fn third_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![shape_from_input(query, 2)])
}

fn stateless_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("dtype")?, [f32, f64, tensor::f16, i32, i64], T => Ok(many(|ctx, mut inputs| {
        let (shape, seed) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let stream = from_seed(&seed)?;
        let request = Request::new(&shape, &inputs.tensor(2)?, &inputs.tensor(3)?)?;
        Ok(outputs![request.samples::<T>(ctx, &stream)?])
    }).heavy()))
}

fn stateful_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    for_types!(setup, setup.dtype("dtype")?, [f32, f64, tensor::f16, i32, i64], T => Ok(many(move |ctx, mut inputs| {
        let algorithm = inputs.tensor(1)?;
        if algorithm.shape().rank() != 0 {
            return Err(invalid!("algorithm must be of shape [], not {}", algorithm.shape()));
        }
        check_algorithm(algorithm.to_scalar::<i64>()?)?;
        let request = Request::new(&inputs.tensor(2)?, &inputs.tensor(3)?, &inputs.tensor(4)?)?;
        let variable = home.find::<Variable>(handle_of(&inputs.tensor(0)?)?)?;
        let (batches, samples) = (request.trials.len() as u64, request.samples_per_batch() as u64);
        let outputs = batches.wrapping_mul(200).wrapping_mul(samples + 3) / 4;
        let stream = take_blocks(&variable, outputs.wrapping_mul(RESERVED_BLOCKS))?;
        Ok(outputs![request.samples::<T>(ctx, &stream)?])
    }).heavy()))
}

/// The shape of the samples, which ends with that of the trials.
struct Request {
    shape: Shape,
    trials: Vec<Trials>,
}

impl Request {
    fn new(shape: &Tensor, counts: &Tensor, probs: &Tensor) -> Result<Request> {
        let broadcast = Broadcast::new(counts.shape(), probs.shape()).ok_or_else(|| {
            invalid!("counts and probs must have compatible batch dimensions: {} vs. {}", counts.shape(), probs.shape())
        })?;
        let rank = counts.shape().rank().max(probs.shape().rank());
        let whole = broadcast_shape(counts.shape(), probs.shape(), rank);
        debug_assert_eq!(whole.elements(), broadcast.out_len());
        if shape.shape().rank() != 1 {
            return Err(invalid!("Input shape should be a vector, got shape: {}", shape.shape()));
        }
        let shape = ending_with(shape, &whole)?;
        let (counts_at, probs_at) = (places(counts.shape(), &whole), places(probs.shape(), &whole));
        let (counts, probs) = (doubles(counts)?, doubles(probs)?);
        let trials = counts_at.zip(probs_at).map(|(c, p)| Trials::new(counts[c], probs[p])).collect();
        Ok(Request { shape, trials })
    }

    fn samples_per_batch(&self) -> usize {
        self.shape.elements() / self.trials.len().max(1)
    }

    fn samples<T: Sampled>(&self, ctx: &Ctx<'_>, stream: &Philox) -> Result<Tensor> {
        draw_from::<T>(ctx, self.shape.clone(), self.trials.len(), |i, number| {
            self.trials[i].sample(stream, number as u64)
        })
    }
}

/// The shape two shapes that can be broadcast make.
pub(crate) fn broadcast_shape(a: &Shape, b: &Shape, rank: usize) -> Shape {
    let at = |shape: &Shape, axis: usize| (axis + shape.rank()).checked_sub(rank).map_or(1, |place| shape[place]);
    (0..rank).map(|axis| if at(a, axis) == 1 { at(b, axis) } else { at(a, axis) }).collect()
}

/// For every element of `whole`, which element of a tensor of shape `part` is broadcast there.
pub(crate) fn places(part: &Shape, whole: &Shape) -> impl Iterator<Item = usize> {
    let (part, whole) = (part.clone(), whole.clone());
    let skip = whole.rank() - part.rank();
    (0..whole.elements()).map(move |mut element| {
        let (mut place, mut stride) = (0, 1);
        for axis in (0..whole.rank()).rev() {
            let at = element % whole[axis];
            element /= whole[axis];
            if axis >= skip {
                let dim = part[axis - skip];
                place += if dim == 1 { 0 } else { at * stride };
                stride *= dim;
            }
        }
        place
    })
}

/// A number of trials and their probability of success.
struct Trials {
    count: f64,
    prob: f64,
}

impl Trials {
    fn new(count: f64, prob: f64) -> Trials {
        Trials { count, prob }
    }

    fn sample(&self, stream: &Philox, number: u64) -> f64 {
        let Trials { count, prob } = *self;
        if count <= 0.0 || prob <= 0.0 {
            return 0.0;
        }
        if prob >= 1.0 {
            return count;
        }
        if prob <= 0.5 {
            return successes(count, prob, stream, number);
        }
        if prob > 0.5 { count - successes(count, 1.0 - prob, stream, number) } else { f64::NAN }
    }
}

/// Successes of a probability of at most one half.
fn successes(count: f64, prob: f64, stream: &Philox, number: u64) -> f64 {
    if count * prob >= 10.0 {
        return by_rejection(count, prob, &mut Source::new(stream, number.wrapping_mul(RESERVED_BLOCKS)));
    }
    by_waiting(count, prob, &mut Source::new(stream, number.wrapping_mul(42)))
}

/// Adds up waiting times, which are geometric, until they exceed the trials.
fn by_waiting(count: f64, prob: f64, source: &mut Source) -> f64 {
    let (mut sum, mut successes) = (0.0, 0.0);
    loop {
        sum += (source.uniform().ln() / (-prob).ln_1p()).ceil();
        if sum > count || sum.is_nan() {
            return successes;
        }
        successes += 1.0;
    }
}

/// Transformed rejection with a squeeze (Hörmann's BTRS, 1993).
fn by_rejection(count: f64, prob: f64, source: &mut Source) -> f64 {
    let deviation = (count * prob * (1.0 - prob)).sqrt();
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * prob;
    let c = count * prob + 0.5;
    let v_r = 0.92 - 4.2 / b;
    let r = prob / (1.0 - prob);
    let alpha = (2.83 + 5.1 / b) * deviation;
    let m = ((count + 1.0) * prob).floor();
    for _ in 0..1_000_000 {
        let u = source.uniform();
        let v = source.uniform();
        let u = u - 0.5;
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + c).floor();
        if us >= 0.07 && v <= v_r {
            return k;
        }
        if k < 0.0 || k > count {
            continue;
        }
        let v = (v * alpha / (a / (us * us) + b)).ln();
        let bound = (m + 0.5) * ((m + 1.0) / (r * (count - m + 1.0))).ln()
            + (count + 1.0) * ((count - m + 1.0) / (count - k + 1.0)).ln()
            + (k + 0.5) * (r * (count - k + 1.0) / (k + 1.0)).ln()
            + stirling_tail(m)
            + stirling_tail(count - m)
            - stirling_tail(k)
            - stirling_tail(count - k);
        if v <= bound {
            return k;
        }
    }
    f64::NAN
}

/// The error of Stirling's formula for `ln k!`; tabulated where the series is not accurate enough.
fn stirling_tail(k: f64) -> f64 {
    const TAIL: [f64; 10] = [
        0.0810614667953272,
        0.0413406959554092,
        0.0276779256849983,
        0.02079067210376509,
        0.0166446911898211,
        0.0138761288230707,
        0.0118967099458917,
        0.0104112652619720,
        0.00925546218271273,
        0.00833056343336287,
    ];
    if k <= 9.0 {
        return TAIL[k.max(0.0) as usize];
    }
    let square = (k + 1.0) * (k + 1.0);
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
}
