//! QuantizeV2 and Dequantize: from floats to quantized integers and back.

use super::level::{Decoder, Encoder, Level, Range, to_i32, to_i64};
use crate::array::args::around;
use graph::ShapeQuery;
use op::{Grad, Kernel, Op, Outputs, PLAIN, Setup, many, outputs};
use status::{Result, invalid, unimplemented_op};
use tensor::{DType, Element, PartialShape, Shape, Tensor, bf16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "QuantizeV2(input: float, min_range: float, max_range: float) -> output: T, output_min: float, \
              output_max: float; T: {qint8, quint8, qint32, qint16, quint16}; \
              mode: {\"MIN_COMBINED\", \"MIN_FIRST\", \"SCALED\"} = \"MIN_COMBINED\"; \
              round_mode: {\"HALF_AWAY_FROM_ZERO\", \"HALF_TO_EVEN\"} = \"HALF_AWAY_FROM_ZERO\"; \
              narrow_range: bool = false; axis: int = -1; ensure_minimum_range: float = 0.01",
        shape: quantize_shape,
        grad: Grad::Unknown,
        kernel: quantize_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Dequantize(input: T, min_range: float, max_range: float) -> output: dtype; \
              T: {qint8, quint8, qint32, qint16, quint16}; \
              mode: {\"MIN_COMBINED\", \"MIN_FIRST\", \"SCALED\"} = \"MIN_COMBINED\"; narrow_range: bool = false; \
              axis: int = -1; dtype: {bfloat16, float} = float",
        shape: op::shapes::unchanged,
        grad: Grad::Unknown,
        kernel: dequantize_kernel,
        facts: PLAIN,
    },
];

/// `input` as integers of type `dtype`, with the range that they stand for.
pub fn quantize(
    input: &graph::Output,
    min: &graph::Output,
    max: &graph::Output,
    dtype: DType,
    mode: &str,
) -> Vec<graph::Output> {
    let op = input.scope().op("QuantizeV2").input(input).input(min).input(max);
    op.attr("T", dtype).attr("mode", mode).node().outputs()
}

/// The floats that integers of a range stand for.
pub fn dequantize(input: &graph::Output, min: &graph::Output, max: &graph::Output, mode: &str) -> graph::Output {
    input.scope().op("Dequantize").input(input).input(min).input(max).attr("mode", mode).output()
}

/// Ranges of channels have a shape that depends on the size of the axis: of one channel they are scalars.
fn quantize_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let range = match query.attr("axis")? {
        graph::AttrValue::Int(axis) if *axis >= 0 => PartialShape::unknown(),
        _ => PartialShape::scalar(),
    };
    Ok(vec![query.inputs[0].clone(), range.clone(), range])
}

/// How integers divide a range.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// The range is divided evenly, so that zero may fall between two integers.
    Combined,
    /// Like `Combined`, but the smallest number is rounded to a multiple of a step.
    First,
    /// The integer zero stands for zero.
    Scaled,
}

impl Mode {
    fn of(setup: &Setup<'_>) -> Result<Mode> {
        Ok(match setup.string("mode")?.as_str() {
            "MIN_FIRST" => Mode::First,
            "SCALED" => Mode::Scaled,
            _ => Mode::Combined,
        })
    }
}

/// The attributes that QuantizeV2 and Dequantize share, and those of QuantizeV2.
#[derive(Clone, Copy)]
struct Quantization {
    mode: Mode,
    narrow: bool,
    axis: i64,
    to_even: bool,
    ensured: f32,
}

fn quantize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (mode, to_even) = (Mode::of(setup)?, setup.string("round_mode")? == "HALF_TO_EVEN");
    if to_even && mode != Mode::Scaled {
        return Err(invalid!(
            "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', b  ut mode is '{}'.",
            setup.string("mode")?
        ));
    }
    let quantization = Quantization {
        mode,
        narrow: setup.bool("narrow_range")?,
        axis: setup.int("axis")?,
        to_even,
        ensured: setup.float("ensure_minimum_range")?,
    };
    let dtype = setup.dtype("T")?;
    for_levels!(setup, dtype, [QI8 = i8, QU8 = u8, QI16 = i16, QU16 = u16, QI32 = i32], T => {
        Ok(many(move |_, mut inputs| {
            let (input, min, max) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
            let sizes = quantization.sizes(&input, &min, &max)?;
            quantization.quantize::<T>(dtype, &input, &min, &max, sizes)
        }))
    })
}

impl Quantization {
    /// How many elements lie before, on and after the axis of the channels.
    fn sizes(&self, input: &Tensor, min: &Tensor, max: &Tensor) -> Result<[usize; 3]> {
        let Ok(axis) = usize::try_from(self.axis) else {
            check_single("min_range", min)?;
            check_single("max_range", max)?;
            return Ok([1, 1, input.elements()]);
        };
        if axis >= input.shape().rank() {
            return Err(invalid!(
                "Axis is on a zero-based index, so its value must always be less than number of input's dims, but \
                 given axis value was {axis} and input's dims was {}",
                input.shape().rank()
            ));
        }
        check_channels("min_range", min.shape(), input.shape()[axis])?;
        check_channels("max_range", max.shape(), input.shape()[axis])?;
        Ok(around(input.shape(), axis))
    }

    fn quantize<T: Level>(
        &self,
        dtype: DType,
        input: &Tensor,
        min: &Tensor,
        max: &Tensor,
        [_, channels, after]: [usize; 3],
    ) -> Result<Outputs> {
        if self.mode == Mode::First && channels != 1 {
            return Err(unimplemented_op!("MIN_FIRST mode is not implemented for Quantize with axis != -1."));
        }
        let ranges = min.values::<f32>()?.iter().zip(max.values::<f32>()?);
        let channels = ranges.map(|(&min, &max)| self.channel::<T>(Range { min, max })).collect::<Result<Vec<_>>>()?;
        let mut out = Tensor::scratch_of(dtype, input.shape())?;
        let runs = out.values_mut::<T>()?.chunks_mut(after.max(1)).zip(input.values::<f32>()?.chunks(after.max(1)));
        for (index, (out, values)) in runs.enumerate() {
            let channel = &channels[index % channels.len()];
            out.iter_mut().zip(values).for_each(|(out, &value)| *out = channel.quantized(value));
        }
        let (min, max): (Vec<f32>, Vec<f32>) =
            channels.iter().map(|channel| (channel.range.min, channel.range.max)).unzip();
        let shape = if min.len() == 1 { Shape::scalar() } else { Shape::from([min.len()]) };
        Ok(outputs![out, Tensor::from_slice(&shape, &min)?, Tensor::from_slice(&shape, &max)?])
    }

    /// What is computed once for a range.
    fn channel<T: Level>(&self, given: Range) -> Result<Channel<T>> {
        if given.max < given.min {
            return Err(invalid!("input_max_range must be larger than input_min_range."));
        }
        let min = smaller(0.0, given.min);
        let epsilon = larger(1.0, larger(given.min.abs(), given.max.abs())) * self.ensured;
        let range = Range { min, max: larger(0.0, larger(given.max, min + epsilon)) };
        Ok(match self.mode {
            Mode::First => Channel { range, scale: 0.0, method: Method::First(Encoder::new(range)) },
            Mode::Combined => {
                let scale = ((T::HIGHEST - T::LOWEST) as f64 / f64::from(range.max - range.min)) as f32;
                Channel { range, scale, method: Method::Combined }
            }
            Mode::Scaled => self.scaled(range),
        })
    }

    fn scaled<T: Level>(&self, range: Range) -> Channel<T> {
        let (lowest, highest) = (lowest::<T>(self.narrow) as f32, T::HIGHEST as f32);
        let side = |level: f32, bound: f32| if level * bound > 0.0 { level / bound } else { f32::MAX };
        let scale = smaller(side(lowest, range.min), side(highest, range.max));
        let range = Range { min: lowest / scale, max: highest / scale };
        Channel { range, scale, method: Method::Scaled { to_even: self.to_even } }
    }
}

/// The smallest integer in use.
fn lowest<T: Level>(narrow: bool) -> i64 {
    T::LOWEST + i64::from(narrow)
}

/// The first of two numbers unless the second is smaller.
fn smaller(a: f32, b: f32) -> f32 {
    if b < a { b } else { a }
}

/// The first of two numbers unless the second is larger.
fn larger(a: f32, b: f32) -> f32 {
    if a < b { b } else { a }
}

/// A range with the step between two integers.
struct Channel<T> {
    range: Range,
    scale: f32,
    method: Method<T>,
}

enum Method<T> {
    First(Encoder<T>),
    Combined,
    Scaled { to_even: bool },
}

impl<T: Level> Channel<T> {
    fn quantized(&self, value: f32) -> T {
        let Range { min, max } = self.range;
        let inside = larger(smaller(value, max), min);
        let level = match &self.method {
            Method::First(encoder) => return encoder.quantized(value),
            Method::Combined if T::LOWEST < 0 => ((inside - min) * self.scale + T::LOWEST as f32).round(),
            Method::Combined => (inside - min) * self.scale + 0.5,
            Method::Scaled { to_even: true } => (inside * self.scale).round_ties_even(),
            Method::Scaled { to_even: false } => (inside * self.scale).round(),
        };
        T::truncated(to_i64(level.into()))
    }
}

fn check_single(name: &str, bound: &Tensor) -> Result<()> {
    match bound.elements() {
        1 => Ok(()),
        count => Err(invalid!(
            "If axis is not specified, {name} must contain a single float element, but it contains {count} elements"
        )),
    }
}

fn check_channels(name: &str, bound: &Shape, channels: usize) -> Result<()> {
    let wanted = format!(
        "If axis is specified, {name} must be a 1-D tensor whose size matches the axis dimension of the input and \
         output tensors, but {name}"
    );
    match **bound {
        [size] if size == channels => Ok(()),
        [size] => {
            Err(invalid!("{wanted} is a 1-D tensor of size {size} and input's axis dimension is of size {channels}"))
        }
        _ => Err(invalid!("{wanted} dims are {}", bound.rank())),
    }
}

fn dequantize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (mode, to) = (Mode::of(setup)?, setup.dtype("dtype")?);
    if to == DType::BF16 && mode != Mode::Combined {
        return Err(invalid!(
            "When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '{}'",
            setup.string("mode")?
        ));
    }
    let (narrow, axis) = (setup.bool("narrow_range")?, setup.int("axis")?);
    let quantization = Quantization { mode, narrow, axis, to_even: false, ensured: 0.0 };
    for_levels!(setup, setup.dtype("T")?, [QI8 = i8, QU8 = u8, QI16 = i16, QU16 = u16, QI32 = i32], T => {
        Ok(many(move |_, mut inputs| {
            let (input, min, max) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
            Ok(outputs![match to {
                DType::BF16 => quantization.dequantize::<T, bf16>(&input, &min, &max, bf16::from_f32)?,
                _ => quantization.dequantize::<T, f32>(&input, &min, &max, |value| value)?,
            }])
        }))
    })
}

impl Quantization {
    fn dequantize<T: Level, U: Element>(
        &self,
        input: &Tensor,
        min: &Tensor,
        max: &Tensor,
        to: fn(f32) -> U,
    ) -> Result<Tensor> {
        let [_, channels, after] = self.dequantized_sizes(input.shape())?;
        for (name, bound) in [("min", min), ("max", max)] {
            if bound.elements() != channels {
                return Err(invalid!(
                    "input_{name}_tensor must have as many elements as input on the dequantization axis ({}), got {}, \
                     expected {channels}",
                    self.axis,
                    bound.elements()
                ));
            }
        }
        if self.mode == Mode::First && channels != 1 {
            return Err(unimplemented_op!("MIN_FIRST mode is not implemented for Dequantize with axis != -1."));
        }
        let ranges = min.values::<f32>()?.iter().zip(max.values::<f32>()?);
        let channels: Vec<_> = ranges.map(|(&min, &max)| self.restoring::<T>(channels, Range { min, max })).collect();
        let mut out = Tensor::scratch::<U>(input.shape())?;
        let runs = out.values_mut::<U>()?.chunks_mut(after.max(1)).zip(input.values::<T>()?.chunks(after.max(1)));
        for (index, (out, values)) in runs.enumerate() {
            let channel = &channels[index % channels.len()];
            out.iter_mut().zip(values).for_each(|(out, &value)| *out = to(channel(value)));
        }
        Ok(out)
    }

    fn dequantized_sizes(&self, shape: &Shape) -> Result<[usize; 3]> {
        if self.axis >= shape.rank() as i64 {
            let rank = shape.rank();
            return Err(invalid!("Axis must be less than input dimension({rank}), got {}", self.axis));
        }
        Ok(match usize::try_from(self.axis) {
            Ok(axis) => around(shape, axis),
            Err(_) => [1, 1, shape.elements()],
        })
    }

    /// The function that computes the floats of one of several channels. Floats of a single channel are made of 32-bit
    /// integers, of which the largest are not floats and overflow.
    fn restoring<T: Level>(&self, channels: usize, range: Range) -> Box<dyn Fn(T) -> f32> {
        let Range { min, max } = range;
        match self.mode {
            Mode::First => {
                let decoder = Decoder::new(range);
                Box::new(move |value| decoder.real(value))
            }
            Mode::Combined => {
                let half = if T::LOWEST < 0 { -(T::LOWEST as f32) } else { 0.0 };
                let scale = (max - min) / (T::HIGHEST as f32 - T::LOWEST as f32);
                Box::new(move |value| (value.float() + half) * scale + min)
            }
            Mode::Scaled => {
                let from_max = max / T::HIGHEST as f32;
                let signed = T::LOWEST < 0;
                let scale = if signed { larger(min / lowest::<T>(self.narrow) as f32, from_max) } else { from_max };
                match self.axis {
                    0.. if channels > 1 => Box::new(move |value| value.float() * scale),
                    _ => Box::new(move |value| to_i32(value.float()) as f32 * scale),
                }
            }
        }
    }
}
