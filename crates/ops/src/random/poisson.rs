//! Samples of Poisson distributions.

use super::sampler::{Sampled, appended, appended_shape, doubles, draw, ending_with};
use super::stream::{Source, Stream, from_seed};
use graph::Output;
use math::function::Real;
use math::philox::Philox;
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, binary, many, outputs};
use status::Result;
use tensor::{DType, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "RandomPoisson(shape: S, rate: dtype) -> output: dtype; seed: int = 0; seed2: int = 0; S: {int32, \
              int64}; dtype: {half, float, double}; stateful",
        shape: appended_shape,
        grad: Grad::Stop,
        kernel: poisson_kernel,
        facts: PLAIN.removed_in(25, "Replaced by RandomPoissonV2"),
    },
    Op {
        def: "RandomPoissonV2(shape: S, rate: R) -> output: dtype; seed: int = 0; seed2: int = 0; S: {int32, \
              int64}; R: {half, float, double, int32, int64} = double; dtype: {half, float, double, int32, int64} = \
              int64; stateful",
        shape: appended_shape,
        grad: Grad::Stop,
        kernel: poisson_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatelessRandomPoisson(shape: T, seed: Tseed, lam: Rtype) -> output: dtype; Rtype: {half, float, \
              double, int32, int64}; dtype: {half, float, double, int32, int64}; T: {int32, int64}; Tseed: {int32, \
              int64} = int64",
        shape: super::draw::from_shape,
        grad: Grad::Stop,
        kernel: stateless_kernel,
        facts: PLAIN,
    },
];

/// `shape` samples of the Poisson distribution for each `rate`, as numbers of type `dtype`.
pub fn random_poisson(shape: &Output, rate: &Output, dtype: DType, seed: Option<i64>) -> Output {
    let (seed, seed2) = super::draw::seeds(shape.scope(), seed);
    let op = shape.scope().op("RandomPoissonV2").input(shape).input(rate).attr("dtype", dtype);
    op.attr("seed", seed).attr("seed2", seed2).output()
}

fn poisson_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let stream = Stream::of(setup)?;
    for_types!(setup, setup.dtype("dtype")?, [f32, f64, tensor::f16, i32, i64], T => {
        Ok(binary(move |ctx, shape, rate| {
            let shape = appended(&shape, rate.shape())?;
            samples::<T>(ctx, &stream.take(shape.elements()), shape, &rate)
        }).heavy())
    })
}

fn stateless_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("dtype")?, [f32, f64, tensor::f16, i32, i64], T => Ok(many(|ctx, mut inputs| {
        let (shape, seed, rate) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let stream = from_seed(&seed)?;
        let shape = ending_with(&shape, rate.shape())?;
        Ok(outputs![samples::<T>(ctx, &stream, shape, &rate)?])
    }).heavy()))
}

fn samples<T: Sampled>(ctx: &Ctx<'_>, stream: &Philox, shape: Shape, rate: &Tensor) -> Result<Tensor> {
    let rates: Vec<Poisson> = doubles(rate)?.into_iter().map(Poisson::new).collect();
    draw::<T>(ctx, stream, shape, rates.len(), |i, source| rates[i].sample(source, T::HIGHEST))
}

/// A Poisson distribution, with the constants of its samplers.
struct Poisson {
    rate: f64,
    exp_neg_rate: f64,
    log_rate: f64,
    a: f64,
    b: f64,
    inv_alpha: f64,
}

impl Poisson {
    fn new(rate: f64) -> Poisson {
        let b = 0.931 + 2.53 * rate.sqrt();
        Poisson {
            rate,
            exp_neg_rate: (-rate).exp(),
            log_rate: rate.ln(),
            a: -0.059 + 0.02483 * b,
            b,
            inv_alpha: 1.1239 + 1.1328 / (b - 3.4),
        }
    }

    fn sample(&self, source: &mut Source, highest: f64) -> f64 {
        if self.rate.is_nan() {
            return f64::NAN;
        }
        if self.rate < 10.0 {
            return self.by_waiting(source, highest);
        }
        if self.rate.is_infinite() { f64::INFINITY } else { self.by_rejection(source, highest) }
    }

    /// Counts exponential waiting times until they exceed one unit (Knuth).
    fn by_waiting(&self, source: &mut Source, highest: f64) -> f64 {
        let (mut product, mut count) = (1.0, 0.0);
        loop {
            product *= source.uniform();
            if product <= self.exp_neg_rate && count <= highest {
                return count;
            }
            count += 1.0;
        }
    }

    /// Transformed rejection (Hörmann, 1993): a table mountain hat over the inverse distribution function.
    fn by_rejection(&self, source: &mut Source, highest: f64) -> f64 {
        // Almost all of a distribution may lie above `highest`; the bound keeps such a kernel from running forever.
        for _ in 0..1_000_000 {
            let u = source.uniform() - 0.5;
            let v = source.uniform();
            let shifted = 0.5 - u.abs();
            let k = ((2.0 * self.a / shifted + self.b) * u + self.rate + 0.43).floor();
            if k > highest {
                continue;
            }
            if shifted >= 0.07 && v <= 0.9277 - 3.6224 / (self.b - 2.0) {
                return k;
            }
            if k < 0.0 || (shifted < 0.013 && v > shifted) {
                continue;
            }
            let s = (v * self.inv_alpha / (self.a / (shifted * shifted) + self.b)).ln();
            if s <= -self.rate + k * self.log_rate - Real::lgamma(k + 1.0) {
                return k;
            }
        }
        highest
    }
}
