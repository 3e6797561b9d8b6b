//! Moves quantized integers to another range: QuantizeDownAndShrinkRange, Requantize, RequantizationRange.

use super::args::{mapped, range, unchanged_with_range, with_range};
use super::level::{Decoder, Encoder, Narrowing, Range};
use op::{Grad, Kernel, Op, PLAIN, Setup, many, outputs, shapes};
use status::{Result, invalid};
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "QuantizeDownAndShrinkRange(input: Tinput, input_min: float, input_max: float) -> output: out_type, \
              output_min: float, output_max: float; Tinput: {qint8, quint8, qint32, qint16, quint16}; \
              out_type: {qint8, quint8, qint32, qint16, quint16}",
        shape: unchanged_with_range,
        grad: Grad::Unknown,
        kernel: shrink_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Requantize(input: Tinput, input_min: float, input_max: float, requested_output_min: float, \
              requested_output_max: float) -> output: out_type, output_min: float, output_max: float; \
              Tinput: {qint8, quint8, qint32, qint16, quint16}; out_type: {qint8, quint8, qint32, qint16, quint16}",
        shape: unchanged_with_range,
        grad: Grad::Unknown,
        kernel: requantize_kernel,
        facts: PLAIN,
    },
    Op {
        def: "RequantizationRange(input: Tinput, input_min: float, input_max: float) -> output_min: float, \
              output_max: float; Tinput: {qint8, quint8, qint32, qint16, quint16}",
        shape: shapes::scalar,
        grad: Grad::Unknown,
        kernel: range_kernel,
        facts: PLAIN,
    },
];

fn shrink_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if (setup.dtype("Tinput")?, setup.dtype("out_type")?) != (DType::QI32, DType::QU8) {
        return Err(setup.no_kernel());
    }
    Ok(many(|_, mut inputs| {
        let from = range(&inputs, 1, ["input_min", "input_max"])?;
        let input = inputs.tensor(0)?;
        let to = used_range(&input, from)?;
        Ok(with_range(narrowed(&input, from, to)?, to))
    }))
}

/// The range from the smallest to the largest element, and at least from zero.
fn used_range(input: &Tensor, range: Range) -> Result<Range> {
    let values = input.values::<i32>()?;
    let (min, max) = values.iter().fold((i32::MAX, i32::MIN), |(min, max), &value| (min.min(value), max.max(value)));
    let min = range.real(min);
    Ok(Range { min: if min < 0.0 { min } else { 0.0 }, max: range.real(max) })
}

fn narrowed(input: &Tensor, from: Range, to: Range) -> Result<Tensor> {
    let narrowing = Narrowing::new(from, to);
    mapped::<i32, u8>(input, DType::QU8, |value| narrowing.narrow(value))
}

fn requantize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let signed = match (setup.dtype("Tinput")?, setup.dtype("out_type")?) {
        (DType::QI32, DType::QI8) => true,
        (DType::QI32, DType::QU8) => false,
        _ => return Err(setup.no_kernel()),
    };
    Ok(many(move |_, mut inputs| {
        let from = range(&inputs, 1, ["input_min", "input_max"])?;
        let to = range(&inputs, 3, ["requested_output_min", "requested_output_max"])?;
        let Range { min, max } = to;
        if !(min <= 0.0) {
            return Err(invalid!("requested_output_min must be <= 0, but got {min}"));
        }
        if !(max >= min) {
            return Err(invalid!("requested_output_max must be >= requested_output_min, but got {max} and {min}"));
        }
        let input = inputs.tensor(0)?;
        let output = match signed {
            true => {
                let (decoder, encoder) = (Decoder::new(from), Encoder::new(to));
                mapped::<i32, i8>(&input, DType::QI8, |value| encoder.quantized(decoder.real(value)))?
            }
            false => narrowed(&input, from, to)?,
        };
        Ok(with_range(output, to))
    }))
}

fn range_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if setup.dtype("Tinput")? != DType::QI32 {
        return Err(setup.no_kernel());
    }
    Ok(many(|_, mut inputs| {
        let first = |index: usize, name: &str| -> Result<f32> {
            let bound = inputs.look(index)?.values::<f32>()?.first().copied();
            bound.ok_or_else(|| invalid!("Input {name} must not be empty."))
        };
        let from = Range { min: first(1, "min")?, max: first(2, "max")? };
        let used = used_range(&inputs.tensor(0)?, from)?;
        Ok(outputs![Tensor::scalar(used.min), Tensor::scalar(used.max)])
    }))
}
