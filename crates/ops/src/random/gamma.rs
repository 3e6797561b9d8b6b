//! Samples of gamma distributions.

use super::sampler::{Sampled, appended, appended_shape, doubles, draw, ending_with};
use super::stream::{Source, Stream, from_key, from_seed};
use graph::Output;
use math::philox::Philox;
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, binary, many, outputs};
use status::{Result, invalid};
use tensor::{Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "RandomGamma(shape: S, alpha: T) -> output: T; seed: int = 0; seed2: int = 0; S: {int32, int64}; T: \
              {half, float, double}; stateful",
        shape: appended_shape,
        grad: Grad::Rule(super::gamma_grad::rule),
        kernel: gamma_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatelessRandomGammaV2(shape: T, seed: Tseed, alpha: dtype) -> output: dtype; dtype: {half, float, \
              double}; T: {int32, int64}; Tseed: {int32, int64} = int64",
        shape: super::draw::from_shape,
        grad: Grad::Rule(super::gamma_grad::stateless_rule),
        kernel: stateless_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatelessRandomGammaV3(shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype) -> \
              output: dtype; dtype: {half, float, double}; shape_dtype: {int32, int64} = int32",
        shape: super::draw::from_shape,
        grad: Grad::Rule(super::gamma_grad::keyed_rule),
        kernel: keyed_kernel,
        facts: PLAIN,
    },
];

/// `shape` samples of the gamma distribution for each `alpha`.
pub fn random_gamma(shape: &Output, alpha: &Output, seed: Option<i64>) -> Output {
    let (seed, seed2) = super::draw::seeds(shape.scope(), seed);
    shape.scope().op("RandomGamma").input(shape).input(alpha).attr("seed", seed).attr("seed2", seed2).output()
}

fn gamma_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let stream = Stream::of(setup)?;
    for_types!(setup, setup.dtype("T")?, [f32, f64, tensor::f16], T => Ok(binary(move |ctx, shape, alpha| {
        let shape = appended(&shape, alpha.shape())?;
        if shape.elements() == 0 {
            return Tensor::zeros::<T>(shape);
        }
        samples::<T>(ctx, &stream.take(shape.elements()), shape, &alpha)
    }).heavy()))
}

fn stateless_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("dtype")?, [f32, f64, tensor::f16], T => Ok(many(|ctx, mut inputs| {
        let (shape, seed, alpha) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let stream = from_seed(&seed)?;
        let shape = ending_with(&shape, alpha.shape())?;
        Ok(outputs![samples::<T>(ctx, &stream, shape, &alpha)?])
    }).heavy()))
}

fn keyed_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("dtype")?, [f32, f64, tensor::f16], T => Ok(many(|ctx, mut inputs| {
        let (shape, alpha) = (inputs.tensor(0)?, inputs.tensor(4)?);
        let stream = from_key(&inputs.tensor(1)?, &inputs.tensor(2)?, &inputs.tensor(3)?, 3)?;
        let shape = ending_with(&shape, alpha.shape())?;
        Ok(outputs![samples::<T>(ctx, &stream, shape, &alpha)?])
    }).heavy()))
}

fn samples<T: Sampled>(ctx: &Ctx<'_>, stream: &Philox, shape: Shape, alpha: &Tensor) -> Result<Tensor> {
    let alphas: Vec<Gamma> = doubles(alpha)?.into_iter().map(Gamma::new).collect();
    if alphas.is_empty() && shape.elements() > 0 {
        return Err(invalid!("Input alpha should have non-zero element count, got: 0"));
    }
    draw::<T>(ctx, stream, shape, alphas.len(), |i, source| alphas[i].sample(source))
}

/// A gamma distribution, sampled by Marsaglia and Tsang's method (2000): a cubed normal, rarely rejected.
struct Gamma {
    alpha: f64,
    d: f64,
    c: f64,
}

impl Gamma {
    fn new(alpha: f64) -> Gamma {
        // Below one the sample is one of alpha + 1, scaled down afterwards.
        let d = alpha + if alpha < 1.0 { 2.0 / 3.0 } else { -1.0 / 3.0 };
        Gamma { alpha, d, c: 1.0 / 3.0 / d.sqrt() }
    }

    fn sample(&self, source: &mut Source) -> f64 {
        if self.alpha == 1.0 {
            return -(-source.uniform()).ln_1p();
        }
        // With alpha = NaN nothing is accepted; the bound keeps such a kernel from running forever.
        for _ in 0..1_000_000 {
            let x = source.normal();
            let root = 1.0 + self.c * x;
            if root <= 0.0 {
                continue;
            }
            let v = root * root * root;
            let u = source.uniform();
            let square = x * x;
            if u < 1.0 - 0.0331 * square * square || u.ln() < 0.5 * square + self.d * (1.0 - v + v.ln()) {
                let scale = if self.alpha < 1.0 { source.uniform().powf(1.0 / self.alpha) } else { 1.0 };
                return self.d * v * scale;
            }
        }
        f64::NAN
    }
}
