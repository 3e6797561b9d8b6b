//! QuantizedBatchNormWithGlobalNormalization.

use super::args::{ranged, single, with_range};
use super::level::Range;
use graph::ShapeQuery;
use op::{Grad, Inputs, Kernel, Op, PLAIN, Setup, many};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "QuantizedBatchNormWithGlobalNormalization(t: Tinput, t_min: float, t_max: float, m: Tinput, m_min: float, \
          m_max: float, v: Tinput, v_min: float, v_max: float, beta: Tinput, beta_min: float, beta_max: float, \
          gamma: Tinput, gamma_min: float, gamma_max: float) -> result: out_type, result_min: float, \
          result_max: float; Tinput: {qint8, quint8, qint32, qint16, quint16}; \
          out_type: {qint8, quint8, qint32, qint16, quint16}; variance_epsilon: float; \
          scale_after_normalization: bool",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(ranged(query.inputs[0].merge(&PartialShape::of_rank(4))?))
}

/// The range of the results: ten bits after the binary point.
const RANGE: Range = Range { min: -1_048_576.0, max: 1_048_576.0 };

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if (setup.dtype("Tinput")?, setup.dtype("out_type")?) != (DType::QU8, DType::QI32) {
        return Err(setup.no_kernel());
    }
    let (epsilon, scaled) = (setup.float("variance_epsilon")?, setup.bool("scale_after_normalization")?);
    Ok(many(move |_, mut inputs| {
        let names = ["input", "mean", "var", "beta", "gamma"];
        let mut ranges = [RANGE; 5];
        for (i, name) in names.into_iter().enumerate() {
            ranges[i] = range(&inputs, 3 * i + 1, name)?;
        }
        let tensors = [0, 3, 6, 9, 12].map(|index| inputs.tensor(index));
        let [input, mean, variance, beta, gamma] = tensors;
        let (input, parameters) = (input?, [mean?, variance?, beta?, gamma?]);
        check(input.shape(), parameters.each_ref().map(Tensor::shape))?;
        let channels = channels(&parameters, &ranges, epsilon, scaled)?;
        Ok(with_range(normalized(&input, ranges[0], &channels)?, RANGE))
    }))
}

fn range(inputs: &Inputs, index: usize, name: &str) -> Result<Range> {
    let bound = |index: usize, end: &str| single(inputs, index, |_| invalid!("{name}_{end} must have 1 element"));
    Ok(Range { min: bound(index, "min")?, max: bound(index + 1, "max")? })
}

fn check(input: &Shape, parameters: [&Shape; 4]) -> Result<()> {
    if input.rank() != 4 {
        return Err(invalid!("input must be 4-dimensional{input}"));
    }
    for (name, shape) in ["mean", "var", "beta", "gamma"].into_iter().zip(parameters) {
        if shape.rank() != 1 {
            return Err(invalid!("{name} must be 1-dimensional{shape}"));
        }
    }
    let [mean, _, _, gamma] = parameters;
    if mean.elements() < 2 {
        return Err(invalid!("Must have at least a mean value{gamma}"));
    }
    if mean[0] != input[3] {
        return Err(invalid!(
            "Must provide as many means as the last dimension of the input tensor: {mean} vs. {input}"
        ));
    }
    for (name, shape) in ["variance", "beta", "gamma"].into_iter().zip(&parameters[1..]) {
        if shape != &mean {
            return Err(invalid!("Mean and {name} tensors must have the same shape: {mean} vs. {shape}"));
        }
    }
    Ok(())
}

/// What the integers of a channel are multiplied with, and what is added to them.
struct Channel {
    scale: i32,
    offset: i32,
}

fn channels(parameters: &[Tensor; 4], ranges: &[Range; 5], epsilon: f32, scaled: bool) -> Result<Vec<Channel>> {
    let reals = |which: usize| -> Result<Vec<f32>> {
        Ok(parameters[which].values::<u8>()?.iter().map(|&value| ranges[which + 1].real(value)).collect())
    };
    let (mean, variance, beta, gamma) = (reals(0)?, reals(1)?, reals(2)?, reals(3)?);
    let channel = |c: usize| {
        let inverse = 1.0 / (variance[c] + epsilon).sqrt();
        let scale = if scaled { inverse * gamma[c] } else { inverse };
        Channel { scale: RANGE.quantized(scale), offset: RANGE.quantized(-mean[c] * scale + beta[c]) }
    };
    Ok((0..mean.len()).map(channel).collect())
}

fn normalized(input: &Tensor, range: Range, channels: &[Channel]) -> Result<Tensor> {
    let one = RANGE.quantized::<i32>(1.0);
    let levels: Vec<i32> = (0..=u8::MAX).map(|code| RANGE.quantized(range.real(code))).collect();
    let mut out = Tensor::scratch_of(DType::QI32, input.shape())?;
    let pairs = input.values::<u8>()?.iter().zip(channels.iter().cycle());
    for (out, (&value, channel)) in out.values_mut::<i32>()?.iter_mut().zip(pairs) {
        let product = levels[usize::from(value)].wrapping_mul(channel.scale);
        *out = product.wrapping_div(one).wrapping_add(channel.offset);
    }
    Ok(out)
}
