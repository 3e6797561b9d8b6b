//! UniformQuantize, UniformDequantize, UniformRequantize and UniformQuantizedClipByValue.

use super::level::Level;
use super::uniform_scale::{Limits, Scales, check_positive, check_shapes, requantized, runs, to_integer};
use op::shapes::unchanged;
use op::{Grad, Kernel, Op, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "UniformQuantize(input: Tin, scales: float, zero_points: int32) -> output: Tout; Tin: {float}; \
              Tout: {qint8, quint8, qint32}; quantization_axis: int = -1; quantization_min_val: int; \
              quantization_max_val: int",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: quantize_kernel,
        facts: PLAIN,
    },
    Op {
        def: "UniformDequantize(input: Tin, scales: float, zero_points: int32) -> output: Tout; \
              Tin: {qint8, quint8, qint32}; Tout: {float}; quantization_axis: int = -1; quantization_min_val: int; \
              quantization_max_val: int",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: dequantize_kernel,
        facts: PLAIN,
    },
    Op {
        def: "UniformRequantize(input: Tin, input_scales: float, input_zero_points: int32, output_scales: float, \
              output_zero_points: int32) -> output: Tout; Tin: {qint8, qint32}; Tout: {qint8, qint32}; \
              input_quantization_axis: int = -1; input_quantization_min_val: int; input_quantization_max_val: int; \
              output_quantization_axis: int = -1; output_quantization_min_val: int; \
              output_quantization_max_val: int",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: requantize_kernel,
        facts: PLAIN,
    },
    Op {
        def: "UniformQuantizedClipByValue(operand: T, min: T, max: T, scales: float, zero_points: int32) -> \
              output: T; T: {qint32}; quantization_axis: int = -1; quantization_min_val: int; \
              quantization_max_val: int",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: clip_kernel,
        facts: PLAIN,
    },
];

/// Reads a quantization axis.
fn axis(setup: &Setup<'_>, name: &str) -> Result<i64> {
    match setup.int(name)? {
        axis @ -1.. => Ok(axis),
        axis => Err(invalid!("{name} must be >= -1, given: {axis}")),
    }
}

fn quantize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, axis, limits) = (setup.dtype("Tout")?, axis(setup, "quantization_axis")?, Limits::of(setup, "")?);
    for_levels!(setup, dtype, [QI8 = i8, QU8 = u8, QI32 = i32], T => Ok(many(move |_, mut inputs| {
        let (input, scales, zero_points) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        check_shapes(input.shape(), &scales, &zero_points, axis)?;
        let scales = Scales::of(&scales, &zero_points)?;
        let [_, channels, after] = runs(input.shape(), axis);
        let mut out = Tensor::scratch_of(dtype, input.shape())?;
        let pairs = out.values_mut::<T>()?.chunks_mut(after.max(1)).zip(input.values::<f32>()?.chunks(after.max(1)));
        for (index, (out, values)) in pairs.enumerate() {
            let (scale, zero_point) = scales.channel(index % channels);
            let inverse = 1.0 / scale;
            for (out, &value) in out.iter_mut().zip(values) {
                *out = T::truncated(limits.quantized(value, inverse, zero_point).into());
            }
        }
        Ok(outputs![out])
    })))
}

fn dequantize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let axis = setup.int("quantization_axis")?;
    for_levels!(setup, setup.dtype("Tin")?, [QI8 = i8, QU8 = u8, QI32 = i32], T => Ok(many(move |_, mut inputs| {
        let (input, scales, zero_points) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        check_shapes(input.shape(), &scales, &zero_points, axis)?;
        check_positive("rhs", &[&scales])?;
        let scales = Scales::of(&scales, &zero_points)?;
        let [_, channels, after] = runs(input.shape(), axis);
        let mut out = Tensor::scratch::<f32>(input.shape())?;
        let pairs = out.values_mut::<f32>()?.chunks_mut(after.max(1)).zip(input.values::<T>()?.chunks(after.max(1)));
        for (index, (out, values)) in pairs.enumerate() {
            let (scale, zero_point) = scales.channel(index % channels);
            for (out, &value) in out.iter_mut().zip(values) {
                *out = to_integer(value).wrapping_sub(zero_point) as f32 * scale;
            }
        }
        Ok(outputs![out])
    })))
}

fn requantize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (from, to) = (axis(setup, "input_quantization_axis")?, axis(setup, "output_quantization_axis")?);
    if from >= 0 && to >= 0 && from != to {
        return Err(invalid!("If input and output is both per-axis quantized, the quantization axis must be same."));
    }
    let limits = Limits::of(setup, "output_")?;
    if setup.dtype("Tout")? != DType::QI8 {
        return Err(setup.no_kernel());
    }
    for_levels!(setup, setup.dtype("Tin")?, [QI8 = i8, QI32 = i32], T => Ok(many(move |_, mut inputs| {
        let input = inputs.tensor(0)?;
        let (scales, zero_points) = (inputs.tensor(1)?, inputs.tensor(2)?);
        let (to_scales, to_zero_points) = (inputs.tensor(3)?, inputs.tensor(4)?);
        check_shapes(input.shape(), &scales, &zero_points, from)?;
        check_shapes(input.shape(), &to_scales, &to_zero_points, to)?;
        check_positive("input/output", &[&scales, &to_scales])?;
        let both = [Scales::of(&scales, &zero_points)?, Scales::of(&to_scales, &to_zero_points)?];
        Ok(outputs![requantized::<T, i8>(&input, DType::QI8, from.max(to), both, limits)?])
    })))
}

fn clip_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let axis = setup.int("quantization_axis")?;
    if setup.dtype("T")? != DType::QI32 {
        return Err(setup.no_kernel());
    }
    Ok(many(move |_, mut inputs| {
        let (mut operand, min, max) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let (scales, zero_points) = (inputs.tensor(3)?, inputs.tensor(4)?);
        check_shapes(operand.shape(), &scales, &zero_points, axis)?;
        for (name, bound) in [("min", &min), ("max", &max)] {
            if bound.shape() != scales.shape() {
                return Err(invalid!(
                    "Input {name} shape must be same as scales/zero_points. Given {name} of shape {} and \
                     scales/zero_points of shape {}",
                    bound.shape(),
                    scales.shape()
                ));
            }
        }
        let [_, channels, after] = runs(operand.shape(), axis);
        let (min, max) = (min.values::<i32>()?, max.values::<i32>()?);
        for (index, run) in operand.values_mut::<i32>()?.chunks_mut(after.max(1)).enumerate() {
            let channel = index % channels;
            run.iter_mut().for_each(|value| *value = (*value).max(min[channel]).min(max[channel]));
        }
        Ok(outputs![operand])
    }))
}
