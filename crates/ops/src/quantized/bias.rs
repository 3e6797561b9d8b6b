//! QuantizedBiasAdd.

use super::args::{range, ranged, with_range};
use super::level::{Decoder, Encoder, Level, Range};
use graph::ShapeQuery;
use op::{Grad, Kernel, Op, PLAIN, Setup, many};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "QuantizedBiasAdd(input: T1, bias: T2, min_input: float, max_input: float, min_bias: float, max_bias: float) \
          -> output: out_type, min_out: float, max_out: float; T1: {qint8, quint8, qint32, qint16, quint16}; \
          T2: {qint8, quint8, qint32, qint16, quint16}; out_type: {qint8, quint8, qint32, qint16, quint16}",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(ranged(query.inputs[0].clone()))
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if setup.dtype("T2")? != setup.dtype("T1")? || setup.dtype("out_type")? != DType::QI32 {
        return Err(setup.no_kernel());
    }
    for_levels!(setup, setup.dtype("T1")?, [QI8 = i8, QU8 = u8], T => Ok(many(|_, mut inputs| {
        let of_input = range(&inputs, 2, ["min_input", "max_input"])?;
        let of_bias = range(&inputs, 4, ["min_bias", "max_bias"])?;
        let (input, bias) = (inputs.tensor(0)?, inputs.tensor(1)?);
        check(input.shape(), bias.shape())?;
        let to = sum_range(of_input, of_bias);
        Ok(with_range(sums::<T>(&input, &bias, of_input, of_bias, to)?, to))
    })))
}

fn check(input: &Shape, bias: &Shape) -> Result<()> {
    if input.rank() < 2 {
        return Err(invalid!("Input tensor must be at least 2D: {input}"));
    }
    if bias.rank() != 1 {
        return Err(invalid!("Biases must be 1D: {bias}"));
    }
    if bias.last() != input.last() {
        return Err(invalid!(
            "Must provide as many biases as the last dimension of the input tensor: {bias} vs. {input}"
        ));
    }
    if bias.elements() == 0 {
        return Err(invalid!("Must provide at least 1 bias"));
    }
    Ok(())
}

/// Symmetric, so that zero stays zero, and wide enough for the sum of both.
fn sum_range(a: Range, b: Range) -> Range {
    Range::symmetric(a.max.max(-a.min).max(b.max.max(-b.min)) * (1 << 17) as f32)
}

fn sums<T: Level>(input: &Tensor, bias: &Tensor, of_input: Range, of_bias: Range, to: Range) -> Result<Tensor> {
    let encoder = Encoder::<i32>::new(to);
    let zero = to.quantized::<i32>(0.0);
    let (of_input, of_bias) = (Decoder::<T>::new(of_input), Decoder::<T>::new(of_bias));
    let biases = bias.values::<T>()?.iter();
    let biases: Vec<i32> = biases.map(|&bias| encoder.quantized(of_bias.real(bias)).wrapping_add(zero)).collect();
    let mut out = Tensor::scratch_of(DType::QI32, input.shape())?;
    let pairs = input.values::<T>()?.iter().zip(biases.iter().cycle());
    for (out, (&value, &bias)) in out.values_mut::<i32>()?.iter_mut().zip(pairs) {
        *out = encoder.quantized(of_input.real(value)).wrapping_add(bias);
    }
    Ok(out)
}
