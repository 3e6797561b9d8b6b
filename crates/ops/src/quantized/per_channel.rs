//! Requantization with one range for each channel: RequantizePerChannel, RequantizationRangePerChannel.

use super::args::{single, unchanged_with_range, with_range};
use super::level::{Level, Range, to_i32};
use op::{Grad, Inputs, Kernel, Op, PLAIN, Setup, many, outputs, shapes};
use status::{Result, invalid};
use tensor::{DType, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "RequantizePerChannel(input: T, input_min: float, input_max: float, requested_output_min: float, \
              requested_output_max: float) -> output: out_type, output_min: float, output_max: float; \
              T: {qint8, quint8, qint32, qint16, quint16} = qint32; \
              out_type: {qint8, quint8, qint32, qint16, quint16} = quint8",
        shape: unchanged_with_range,
        grad: Grad::Unknown,
        kernel: requantize_kernel,
        facts: PLAIN,
    },
    Op {
        def: "RequantizationRangePerChannel(input: T, input_min: float, input_max: float) -> output_min: float, \
              output_max: float; T: {qint8, quint8, qint32, qint16, quint16} = qint32; clip_value_max: float",
        shape: shapes::scalar,
        grad: Grad::Unknown,
        kernel: range_kernel,
        facts: PLAIN,
    },
];

/// The number of integers of one sign.
const HALF: f32 = 2_147_483_648.0;

/// The larger of two magnitudes.
pub(crate) fn magnitude(min: f32, max: f32) -> f32 {
    let (min, max) = (min.abs(), max.abs());
    if min < max { max } else { min }
}

fn requantize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if setup.dtype("T")? != DType::QI32 {
        return Err(setup.no_kernel());
    }
    let dtype = setup.dtype("out_type")?;
    for_levels!(setup, dtype, [QI8 = i8, QU8 = u8], T => Ok(many(move |_, mut inputs| {
        let input = inputs.tensor(0)?;
        if input.shape().rank() != 4 {
            return Err(invalid!("Current RequantizePerChannel operatorsupports 4D tensors only."));
        }
        let limits = limits(&inputs, input.shape())?;
        let bound = |index: usize, name: &str| {
            single(&inputs, index, |_| invalid!("requested_output_{name} must be a scalar"))
        };
        let to = Range { min: bound(3, "min")?, max: bound(4, "max")? };
        if T::LOWEST < 0 && !(to.min < 0.0) {
            return Err(invalid!("If out_type is QINT8, requested_output_max must be non negative, got {}", to.min));
        }
        let largest = magnitude(to.min, to.max);
        let scales: Vec<f32> = limits.iter().map(|limit| T::HIGHEST as f32 * (limit / largest / HALF)).collect();
        Ok(with_range(scaled::<T>(&input, dtype, &scales)?, to))
    })))
}

/// The largest magnitude of each channel.
fn limits(inputs: &Inputs, input: &Shape) -> Result<Vec<f32>> {
    let (min, max) = (inputs.look(1)?.values::<f32>()?, inputs.look(2)?.values::<f32>()?);
    if max.len() != min.len() {
        return Err(invalid!("input_max has incorrect size, expected {} was {}", min.len(), max.len()));
    }
    if input.elements() > 0 && min.len() != input[3] {
        return Err(invalid!("input_min has incorrect size, expected {} was {}", input[3], min.len()));
    }
    Ok(min.iter().zip(max).map(|(&min, &max)| magnitude(min, max)).collect())
}

fn scaled<T: Level>(input: &Tensor, dtype: DType, scales: &[f32]) -> Result<Tensor> {
    let mut out = Tensor::scratch_of(dtype, input.shape())?;
    let values = input.values::<i32>()?.iter().zip(scales.iter().cycle());
    for (out, (&value, &scale)) in out.values_mut::<T>()?.iter_mut().zip(values) {
        *out = rounded(value as f32 * scale);
    }
    Ok(out)
}

/// The closest integer, halves to even numbers; NaN becomes the smallest.
pub(crate) fn rounded<T: Level>(value: f32) -> T {
    let value = if value.is_nan() { T::LOWEST as f32 } else { value };
    T::saturated(value.round_ties_even() as i64)
}

fn range_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if setup.dtype("T")? != DType::QI32 {
        return Err(setup.no_kernel());
    }
    let clip = setup.float("clip_value_max")?;
    Ok(many(move |_, mut inputs| {
        let (input, min, max) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        check_channels(input.shape(), &min, &max)?;
        let (min, max) = (min.values::<f32>()?, max.values::<f32>()?);
        let depth = max.len();
        let mut extents = vec![(i32::MAX, i32::MIN); depth];
        for row in input.values::<i32>()?.chunks_exact(depth) {
            let pairs = row.iter().zip(&mut extents);
            pairs.for_each(|(&value, extent)| *extent = (extent.0.min(value), extent.1.max(value)));
        }
        let mut limit = f32::MIN_POSITIVE;
        for (channel, &(lowest, highest)) in extents.iter().enumerate() {
            let used = magnitude(min[channel], max[channel]) * wider(lowest, highest) as f32 / HALF;
            limit = if limit < used { used } else { limit };
        }
        let limit = if limit > clip { clip } else { limit };
        let negative = input.values::<i32>()?.iter().any(|&value| value < 0);
        let lowest = if negative { -limit } else { 0.0 };
        Ok(outputs![Tensor::scalar(lowest), Tensor::scalar(limit)])
    }))
}

/// The larger magnitude. The integers are read as floats, so that the largest overflow; the smallest has no magnitude.
fn wider(lowest: i32, highest: i32) -> i32 {
    to_i32(lowest.float()).wrapping_abs().max(to_i32(highest.float()).wrapping_abs())
}

fn check_channels(input: &Shape, min: &Tensor, max: &Tensor) -> Result<()> {
    let depth = max.elements();
    for (name, bound) in [("input_min", min), ("input_max", max)] {
        let size = bound.shape().first().copied().unwrap_or(0);
        if size != depth {
            return Err(invalid!("{name} has incorrect size, expected {depth} was {size}"));
        }
    }
    if min.elements() != depth {
        let found = min.elements();
        return Err(invalid!("input_min must have the same number of elements as input_max, got {found} and {depth}"));
    }
    if input.elements() == 0 {
        return Err(invalid!("input must not be empty"));
    }
    if input.rank() != 4 {
        return Err(invalid!("input must be in NHWC format"));
    }
    match input[3] == depth {
        true => Ok(()),
        false => {
            Err(invalid!("input must have same number of channels as length of input_min: {} vs {depth}", input[3]))
        }
    }
}
