//! Samples of truncated normal distributions.

use super::binomial::places;
use super::sampler::{Sampled, doubles, ending_with};
use super::stream::{Stream, from_seed, shape_of};
use crate::array::nodes;
use crate::math_ops::broadcast_grad::sum_to_shape_of;
use graph::{Node, Output};
use math::philox::{Draw, Philox};
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, grads, many, outputs};
use status::{Result, internal, invalid};
use std::f64::consts::FRAC_1_SQRT_2;
use tensor::{DType, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ParameterizedTruncatedNormal(shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype) \
              -> output: dtype; seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, float, double}; T: {int32, \
              int64}; stateful",
        shape: super::draw::from_shape,
        grad: Grad::Stop,
        kernel: stateful_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatelessParameterizedTruncatedNormal(shape: S, seed: Tseed, means: dtype, stddevs: dtype, minvals: \
              dtype, maxvals: dtype) -> output: dtype; S: {int32, int64}; Tseed: {int32, int64} = int64; dtype: \
              {half, float, double}",
        shape: super::draw::from_shape,
        grad: Grad::Rule(stateless_rule),
        kernel: stateless_kernel,
        facts: PLAIN,
    },
];

/// The quantile of a sample in its distribution F is constant: by a parameter, dx = -(dF by it) / (dF by x).
fn stateless_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [_, _, mean, deviation, low, high] = op.inputs()?;
    let sample = op.output(0);
    let deviations = |x: &Output| (x - &mean) / &deviation;
    let (at, at_low, at_high) = (deviations(&sample), deviations(&low), deviations(&high));
    let twice_below = |x: &Output| nodes::one("Erfc", &(x * x.like(-FRAC_1_SQRT_2)));
    let (below, least) = (twice_below(&at), twice_below(&at_low));
    let part = (below - &least) / (twice_below(&at_high) - &least);
    // Clipped to exclude zero and one, whose logarithms are infinite.
    let (tiny, nearly) = edges(mean.dtype());
    let part = nodes::pair("Minimum", &nodes::pair("Maximum", &part, &part.like(tiny)), &part.like(nearly));
    let falls = |bound: &Output, log: Output| {
        let squares = nodes::one("Square", &at) - nodes::one("Square", bound);
        nodes::one("Exp", &(squares * at.like(0.5) + log))
    };
    let by_low = falls(&at_low, nodes::one("Log1p", &-&part));
    let by_high = falls(&at_high, nodes::one("Log", &part));
    let back = |gradient: Output, parameter: &Output| sum_to_shape_of(gradient, parameter, &sample);
    Ok(grads![
        NoGradient,
        NoGradient,
        back(dy.clone(), &mean),
        back(dy * &at, &deviation),
        back(dy * by_low, &low),
        back(dy * by_high, &high)
    ])
}

/// The smallest number of a type that is not subnormal, and the largest below one.
fn edges(dtype: DType) -> (f64, f64) {
    let (smallest, digits) = match dtype {
        DType::F16 => (-14, 10),
        DType::F32 => (-126, 23),
        _ => (-1022, 52),
    };
    (2.0_f64.powi(smallest), 1.0 - 2.0_f64.powi(-digits))
}

/// The number of tries after which a sampler stops.
const TRIES: usize = 1000;
/// If mean and bound are at least this many deviations apart, normal numbers are drawn and rejected if out of range.
const FAR: f64 = 1.3;

/// A float that this family draws.
pub(crate) trait Bounded: Sampled + Draw {
    /// The number as a double.
    fn wide(self) -> f64;
    /// A double rounded to this type, as a double: formulas are computed in the precision of the result.
    fn rounded(x: f64) -> f64 {
        Self::of(x).wide()
    }
}

impl Bounded for f32 {
    fn wide(self) -> f64 {
        self.into()
    }
}

impl Bounded for f64 {
    fn wide(self) -> f64 {
        self
    }
}

impl Bounded for tensor::f16 {
    fn wide(self) -> f64 {
        self.to_f64()
    }
}

fn stateful_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let stream = Stream::of(setup)?;
    for_types!(setup, setup.dtype("dtype")?, [f32, f64, tensor::f16], T => Ok(many(move |_, mut inputs| {
        let shape = leading_shape(&inputs.tensor(0)?)?;
        let parameters = inputs.tensors(1, 4)?;
        let (mut batches, mut samples) = (shape[0], shape[1..].iter().product::<usize>());
        let elements = shape.elements();
        check_vectors(&parameters, batches)?;
        let one = |tensor: &Tensor| tensor.shape().rank() == 0 || tensor.shape()[0] == 1;
        if one(&parameters[0]) && one(&parameters[1]) && parameters[2..].iter().all(|p| p.shape().rank() == 0) {
            (batches, samples) = (elements.div_ceil(100), 100);
        }
        let stream = stream.take_blocks((batches * 2 * TRIES * (samples + 3) / 4) as u64);
        let values = parameters.iter().map(doubles).collect::<Result<Vec<_>>>()?;
        let at = |values: &[f64], batch: usize| values[if values.len() == 1 { 0 } else { batch }];
        let mut out = Tensor::zeros::<T>(shape)?;
        let mut source = Blocks::<T>::new(stream);
        for (batch, out) in out.values_mut::<T>()?.chunks_mut(samples.max(1)).enumerate() {
            let [mean, deviation, low, high] = std::array::from_fn(|i| at(&values[i], batch));
            Normal::<T>::new(mean, deviation, low, high)?.fill(&mut source, out)?;
        }
        Ok(outputs![out])
    }).heavy()))
}

fn leading_shape(shape: &Tensor) -> Result<Shape> {
    if shape.shape().rank() != 1 {
        return Err(invalid!("Input shape should be a vector, got shape: {}", shape.shape()));
    }
    if shape.elements() == 0 {
        return Err(invalid!("Shape tensor must not be empty, got {shape:?}"));
    }
    shape_of(shape)
}

fn check_vectors(parameters: &[Tensor], batches: usize) -> Result<()> {
    for (name, parameter) in ["means", "stddevs", "minvals", "maxvals"].iter().zip(parameters) {
        match parameter.shape().dims() {
            [] | [1] => {}
            [len] if *len == batches => {}
            [_] => {
                return Err(invalid!(
                    "Input {name} should have length 1 or shape[0], got shape: {}",
                    parameter.shape()
                ));
            }
            _ => return Err(invalid!("Input {name} should be a scalar or vector, got shape: {}", parameter.shape())),
        }
    }
    Ok(())
}

fn stateless_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("dtype")?, [f32, f64, tensor::f16], T => Ok(many(|_, mut inputs| {
        let stream = from_seed(&inputs.tensor(1)?)?;
        let shape = inputs.tensor(0)?;
        let parameters = inputs.tensors(2, 4)?;
        let whole = common_shape(&parameters)?;
        if shape.shape().rank() != 1 {
            return Err(invalid!("Input shape should be a vector, got shape: {}", shape.shape()));
        }
        let shape = ending_with(&shape, &whole)?;
        let batches = whole.elements();
        let samples = shape.elements() / batches.max(1);
        let values = parameters.iter().map(doubles).collect::<Result<Vec<_>>>()?;
        let at: Vec<Vec<usize>> = parameters.iter().map(|p| places(p.shape(), &whole).collect()).collect();
        let mut out = Tensor::zeros::<T>(shape)?;
        let (mut source, mut column) = (Blocks::<T>::new(stream), vec![T::default(); samples]);
        for batch in 0..if samples == 0 { 0 } else { batches } {
            let [mean, deviation, low, high] = std::array::from_fn(|i| values[i][at[i][batch]]);
            Normal::<T>::new(mean, deviation, low, high)?.fill(&mut source, &mut column)?;
            let places = out.values_mut::<T>()?.iter_mut().skip(batch).step_by(batches);
            places.zip(&column).for_each(|(place, &sample)| *place = sample);
        }
        Ok(outputs![out])
    }).heavy()))
}

fn common_shape(parameters: &[Tensor]) -> Result<Shape> {
    let rank = parameters.iter().map(|p| p.shape().rank()).max().unwrap_or(0);
    let mut dims = vec![1; rank];
    for parameter in parameters {
        let skip = rank - parameter.shape().rank();
        for (dim, &own) in dims[skip..].iter_mut().zip(parameter.shape().iter()) {
            if *dim != own && *dim != 1 && own != 1 {
                let shapes: Vec<String> = parameters.iter().map(|p| p.shape().to_string()).collect();
                return Err(invalid!(
                    "means, stddevs, minvals, maxvals must have compatible batch dimensions: {}",
                    shapes.join(" vs. ")
                ));
            }
            *dim = if *dim == 1 { own } else { *dim };
        }
    }
    Ok(Shape::from(dims))
}

/// The blocks of a stream, one by one.
struct Blocks<T> {
    stream: Philox,
    next: u64,
    values: Vec<T>,
}

impl<T: Bounded> Blocks<T> {
    fn new(stream: Philox) -> Blocks<T> {
        Blocks { stream, next: 0, values: vec![T::default(); T::PER_BLOCK] }
    }

    /// Numbers of the next block.
    fn draw(&mut self, draw: fn([u32; 4], &mut [T])) -> Vec<f64> {
        draw(self.stream.block(self.next), &mut self.values);
        self.next += 1;
        self.values.iter().map(|value| value.wide()).collect()
    }
}

/// A normal distribution between bounds, in deviations from its mean.
struct Normal<T> {
    mean: f64,
    deviation: f64,
    low: f64,
    high: f64,
    kind: std::marker::PhantomData<T>,
}

impl<T: Bounded> Normal<T> {
    fn new(mean: f64, mut deviation: f64, mut low: f64, mut high: f64) -> Result<Normal<T>> {
        if !(deviation > 0.0 && low < high && (low.is_finite() || high.is_finite())) {
            return Err(invalid!("Invalid parameters"));
        }
        // If possible the lower bound is the finite one, or both are above the mean.
        if low == f64::NEG_INFINITY || high < mean {
            (low, high, deviation) = (high, low, -deviation);
        }
        let scaled = |bound: f64| T::rounded(T::rounded(bound - mean) / deviation);
        Ok(Normal { mean, deviation, low: scaled(low), high: scaled(high), kind: std::marker::PhantomData })
    }

    fn fill(&self, source: &mut Blocks<T>, out: &mut [T]) -> Result<()> {
        let root = (self.low * self.low + 4.0).sqrt();
        let cutoff = 2.0 * (0.5 + self.low * (self.low - root) / 4.0).exp() / (self.low + root);
        if (self.low < -FAR && self.high >= 0.0) || (self.high > FAR && self.low <= 0.0) {
            return self.from_normal(source, out);
        }
        if self.high - self.low < cutoff { self.from_uniform(source, out) } else { self.from_exponential(source, out) }
    }

    fn result(&self, z: f64) -> T {
        T::of(T::rounded(z * self.deviation) + self.mean)
    }

    fn from_normal(&self, source: &mut Blocks<T>, out: &mut [T]) -> Result<()> {
        let (mut filled, mut tries) = (0, 0);
        while filled < out.len() {
            for z in source.draw(T::normal) {
                if z >= self.low && z <= self.high {
                    out[filled] = self.result(z);
                    (filled, tries) = (filled + 1, 0);
                    if filled == out.len() {
                        break;
                    }
                } else {
                    tries += 1;
                    if tries > TRIES {
                        return Err(internal!("TruncatedNormal randn rejection sampler failed to accept a sample."));
                    }
                }
            }
        }
        Ok(())
    }

    fn from_uniform(&self, source: &mut Blocks<T>, out: &mut [T]) -> Result<()> {
        let width = T::rounded(self.high - self.low);
        let plus = if self.low < 0.0 { 0.0 } else { self.low * self.low };
        let (mut filled, mut tries) = (0, 0);
        while filled < out.len() {
            let proposals = source.draw(T::uniform);
            let limits = source.draw(T::uniform);
            for (x, u) in proposals.into_iter().zip(limits) {
                let z = T::rounded(T::rounded(x * width) + self.low);
                if u <= T::rounded(((plus - z * z) / 2.0).exp()) {
                    out[filled] = self.result(z);
                    (filled, tries) = (filled + 1, 0);
                    if filled == out.len() {
                        break;
                    }
                } else {
                    tries += 1;
                    if tries >= TRIES {
                        return Err(internal!("TruncatedNormal uniform rejection sampler failed to  accept a sample."));
                    }
                }
            }
        }
        Ok(())
    }

    fn from_exponential(&self, source: &mut Blocks<T>, out: &mut [T]) -> Result<()> {
        let alpha = T::rounded((self.low + (self.low * self.low + 4.0).sqrt()) / 2.0);
        let (mut filled, mut tries) = (0, 0);
        while filled < out.len() {
            for pair in source.draw(T::uniform).chunks_exact(2) {
                let z = T::rounded(T::rounded(-T::rounded(pair[0].ln()) / alpha) + self.low);
                let x = if self.low < alpha { alpha - z } else { self.low - alpha };
                if pair[1] <= T::rounded((-x * x / 2.0).exp()) && z < self.high {
                    out[filled] = self.result(z);
                    (filled, tries) = (filled + 1, 0);
                    if filled == out.len() {
                        break;
                    }
                } else {
                    tries += 1;
                    if tries >= TRIES {
                        return Err(internal!(
                            "TruncatedNormal exponential distribution rejection sampler failed to accept a sample."
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}
