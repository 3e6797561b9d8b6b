//! Samples of classes by their unnormalised log-probabilities.

use super::sampler::doubles;
use super::stream::{Stream, from_seed};
use graph::{Output, ShapeQuery};
use math::parallel::split_rows_mut;
use math::philox::{Draw, Philox};
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, binary, many, outputs};
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Multinomial(logits: T, num_samples: int32) -> output: output_dtype; seed: int = 0; seed2: int = 0; T: \
              realnumbertype; output_dtype: {int32, int64} = int64; stateful",
        shape: samples_shape,
        grad: Grad::Stop,
        kernel: multinomial_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatelessMultinomial(logits: T, num_samples: int32, seed: Tseed) -> output: output_dtype; T: \
              realnumbertype; Tseed: {int32, int64} = int64; output_dtype: {int32, int64} = int64",
        shape: samples_shape,
        grad: Grad::Stop,
        kernel: stateless_kernel,
        facts: PLAIN,
    },
];

/// `num_samples` classes for each row of `logits`.
pub fn multinomial(logits: &Output, num_samples: &Output, seed: Option<i64>) -> Output {
    let (seed, seed2) = super::draw::seeds(logits.scope(), seed);
    let op = logits.scope().op("Multinomial").input(logits).input(num_samples);
    op.attr("seed", seed).attr("seed2", seed2).output()
}

fn samples_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let rows = query.inputs[0].dim(0).map_or(-1, |rows| rows as i64);
    let count = query.constants[1].as_ref().and_then(|count| count.to_scalar::<i32>().ok());
    Ok(vec![PartialShape::new(&[rows, count.map_or(-1, i64::from)])])
}

fn multinomial_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let stream = Stream::of(setup)?;
    let check = logits_types(setup)?;
    for_types!(setup, setup.dtype("output_dtype")?, [i32, i64], T => Ok(binary(move |ctx, logits, count| {
        let request = Request::new(logits, &count, check)?;
        let reserved = request.rows.saturating_mul(request.count.div_ceil(4) * 4 * 2);
        let stream = if request.rows * request.count > 0 { stream.take(reserved) } else { stream.take(0) };
        request.samples::<T>(ctx, &stream)
    }).heavy()))
}

fn stateless_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let check = logits_types(setup)?;
    for_types!(setup, setup.dtype("output_dtype")?, [i32, i64], T => Ok(many(move |ctx, mut inputs| {
        let stream = from_seed(&inputs.tensor(2)?)?;
        let request = Request::new(inputs.tensor(0)?, &inputs.tensor(1)?, check)?;
        Ok(outputs![request.samples::<T>(ctx, &stream)?])
    }).heavy()))
}

/// The type of the logits, if there is a kernel for it.
fn logits_types(setup: &Setup<'_>) -> Result<DType> {
    for_floats!(setup, setup.dtype("T")?, T => Ok(T::DTYPE))
}

/// The inputs of the op.
struct Request {
    logits: Vec<f64>,
    rows: usize,
    classes: usize,
    count: usize,
}

impl Request {
    fn new(logits: Tensor, count: &Tensor, dtype: DType) -> Result<Request> {
        let &[rows, classes] = logits.shape().dims() else {
            return Err(invalid!("logits should be a matrix, got shape {}", logits.shape()));
        };
        if logits.dtype() != dtype {
            return Err(invalid!("logits should be of type {dtype}, got {}", logits.dtype()));
        }
        if count.shape().rank() != 0 {
            return Err(invalid!("num_samples should be a scalar, got shape {}", count.shape()));
        }
        let count = count.to_scalar::<i32>()?;
        let count = usize::try_from(count).map_err(|_| invalid!("num_samples should be non-negative, got {count}"))?;
        if classes == 0 {
            return Err(invalid!("num_classes should be positive, got 0"));
        }
        Ok(Request { logits: doubles(&logits)?, rows, classes, count })
    }

    /// Samples by inversion: the first class whose cumulative probability exceeds a uniform number.
    fn samples<T: Element + TryFrom<usize>>(&self, ctx: &Ctx<'_>, stream: &Philox) -> Result<Tensor> {
        tensor::Shape::new(&[self.rows, self.count]).checked_elements()?;
        let mut out = Tensor::zeros::<T>([self.rows, self.count])?;
        if self.count == 0 {
            return Ok(out);
        }
        let cost = 5.0 * self.classes as f32 + 20.0 * self.count as f32;
        split_rows_mut(ctx.pool(), cost, out.values_mut::<T>()?, self.count, |first, chunk| {
            let mut sums = vec![0.0; self.classes];
            for (row, out) in (first..).zip(chunk.chunks_mut(self.count)) {
                cumulate(&self.logits[row * self.classes..][..self.classes], &mut sums);
                for (column, out) in out.iter_mut().enumerate() {
                    let wanted = uniform(stream, row * self.count + column) * sums[self.classes - 1];
                    let class = sums.partition_point(|&sum| sum <= wanted);
                    *out = T::try_from(class).unwrap_or_default();
                }
            }
        });
        Ok(out)
    }
}

/// Cumulated probabilities, up to a factor; a logit that is not finite adds nothing.
fn cumulate(logits: &[f64], sums: &mut [f64]) {
    let highest = logits.iter().copied().filter(|logit| logit.is_finite()).fold(f64::MIN, f64::max);
    let mut sum = 0.0;
    for (logit, out) in logits.iter().zip(sums) {
        if logit.is_finite() {
            sum += (logit - highest).exp();
        }
        *out = sum;
    }
}

/// Uniform number `index` of a stream of doubles.
fn uniform(stream: &Philox, index: usize) -> f64 {
    let mut pair = [0.0; 2];
    f64::uniform(stream.block(index as u64 / 2), &mut pair);
    pair[index % 2]
}
