//! The QuantizeAndDequantize family: rounds values as quantization would.

use super::args::around;
use graph::{Node, Output, ShapeQuery};
use op::shapes::{integers, merged, unchanged};
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, grads, many, outputs, unary};
use status::{Result, invalid};
use std::ops::{Add, Div, Mul};
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "QuantizeAndDequantize(input: T) -> output: T; signed_input: bool = true; num_bits: int = 8; \
              range_given: bool = false; input_min: float = 0.0; input_max: float = 0.0; \
              T: {bfloat16, half, float, double}",
        shape: unchanged,
        grad: Grad::Rule(|_, dy| Ok(grads![dy.clone()])),
        kernel: v1_kernel,
        facts: PLAIN.removed_in(22, "Replaced by QuantizeAndDequantizeV2"),
    },
    Op {
        def: "QuantizeAndDequantizeV2(input: T, input_min: T, input_max: T) -> output: T; signed_input: bool = true; \
              num_bits: int = 8; range_given: bool = false; T: {bfloat16, half, float, double}; \
              round_mode: {\"HALF_TO_EVEN\", \"HALF_UP\"} = \"HALF_TO_EVEN\"; narrow_range: bool = false; \
              axis: int = -1",
        shape: unchanged,
        grad: Grad::Rule(|_, dy| Ok(grads![dy.clone(), NoGradient, NoGradient])),
        kernel: v2_kernel,
        facts: PLAIN,
    },
    Op {
        def: "QuantizeAndDequantizeV3(input: T, input_min: T, input_max: T, num_bits: int32) -> output: T; \
              signed_input: bool = true; range_given: bool = true; T: {bfloat16, half, float, double}; \
              narrow_range: bool = false; axis: int = -1",
        shape: unchanged,
        grad: Grad::Rule(|_, dy| Ok(grads![dy.clone(), NoGradient, NoGradient, NoGradient])),
        kernel: v3_kernel,
        facts: PLAIN,
    },
    Op {
        def: "QuantizeAndDequantizeV4(input: T, input_min: T, input_max: T) -> output: T; signed_input: bool = true; \
              num_bits: int = 8; range_given: bool = false; T: {bfloat16, half, float, double}; \
              round_mode: {\"HALF_TO_EVEN\", \"HALF_UP\"} = \"HALF_TO_EVEN\"; narrow_range: bool = false; \
              axis: int = -1",
        shape: unchanged,
        grad: Grad::Rule(v4_rule),
        kernel: v2_kernel,
        facts: PLAIN,
    },
    Op {
        def: "QuantizeAndDequantizeV4Grad(gradients: T, input: T, input_min: T, input_max: T) -> input_backprop: T, \
              input_min_backprop: T, input_max_backprop: T; T: {bfloat16, half, float, double}; axis: int = -1",
        shape: v4_grad_shape,
        grad: Grad::Unknown,
        kernel: v4_grad_kernel,
        facts: PLAIN,
    },
];

/// `input` rounded to 8 bits between its smallest and its largest element.
pub fn quantize_and_dequantize(input: &Output) -> Output {
    let zero = input.like(0.0);
    input.scope().op("QuantizeAndDequantizeV2").input(input).input(&zero).input(&zero).output()
}

fn v4_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [input, min, max] = op.inputs()?;
    let node = dy.scope().op("QuantizeAndDequantizeV4Grad").input(dy).input(&input).input(&min).input(&max);
    let node = node.attr("axis", op.attr("axis")?).node();
    Ok(grads![node.output(0), node.output(1), node.output(2)])
}

fn v4_grad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let input = merged(&ShapeQuery { inputs: &query.inputs[..2], outputs: 1, ..*query })?;
    let range = query.inputs[2].merge(&query.inputs[3])?;
    Ok(vec![input[0].clone(), range.clone(), range])
}

/// A floating-point number; everything is computed in its own arithmetic.
trait Real: Element + PartialOrd + Add<Output = Self> + Mul<Output = Self> + Div<Output = Self> {
    const HIGHEST: Self;
    fn from_double(value: f64) -> Self;
    fn to_double(self) -> f64;
}

macro_rules! reals {
    ($($float:ty, $highest:expr, $from:expr, $to:expr;)*) => {$(
        impl Real for $float {
            const HIGHEST: $float = $highest;

            fn from_double(value: f64) -> $float {
                let from: fn(f64) -> $float = $from;
                from(value)
            }

            fn to_double(self) -> f64 {
                let to: fn($float) -> f64 = $to;
                to(self)
            }
        }
    )*};
}

reals! {
    f32, f32::MAX, |x| x as f32, |x| x.into();
    f64, f64::MAX, |x| x, |x| x;
}

/// How values are rounded.
#[derive(Clone, Copy)]
struct Rounding {
    signed: bool,
    narrow: bool,
    half_up: bool,
    /// True if the range is an input; then values are clipped to it.
    given: bool,
    axis: i64,
}

impl Rounding {
    fn read(setup: &Setup<'_>) -> Result<Rounding> {
        let flag = |name: &str| if setup.find(name).is_some() { setup.bool(name) } else { Ok(false) };
        Ok(Rounding {
            signed: setup.bool("signed_input")?,
            narrow: flag("narrow_range")?,
            half_up: setup.find("round_mode").is_some() && setup.string("round_mode")? == "HALF_UP",
            given: setup.bool("range_given")?,
            axis: if setup.find("axis").is_some() { setup.int("axis")? } else { -1 },
        })
    }

    fn check_bits(&self, bits: i64, mark: &str) -> Result<u32> {
        let most = if self.signed { 62 } else { 63 };
        match bits > 0 && bits < most {
            true => Ok(bits as u32),
            false => {
                let signed = u8::from(self.signed);
                Err(invalid!("num_bits is out of range: {bits} with {mark}signed_input_{mark} {signed}"))
            }
        }
    }

    /// The range from `min` to `max` adjusted to integers of this many bits, so that zero is represented exactly.
    fn scale<T: Real>(&self, bits: u32, min: T, max: T) -> Scale<T> {
        let half = 1_i64 << (bits - 1);
        let lowest = if self.signed { -half + i64::from(self.narrow) } else { 0 };
        let highest = if self.signed { half - 1 } else { ((1_u64 << bits) - 1) as i64 };
        let (low, high) = (T::from_double(lowest as f64), T::from_double(highest as f64));
        let zero = T::default();
        let side = |step: T, bound: T| if step * bound > zero { step / bound } else { T::HIGHEST };
        let (from_min, from_max) = (side(low, min), side(high, max));
        if from_min < from_max {
            let inverse = min / low;
            Scale { min, max: high * inverse, scale: from_min, inverse }
        } else {
            let inverse = max / high;
            Scale { min: low * inverse, max, scale: from_max, inverse }
        }
    }

    fn apply<T: Real>(&self, scale: &Scale<T>, value: T) -> T {
        let value = if self.given { smaller_larger(value, scale) } else { value };
        let scaled = value * scale.scale;
        let rounded = match self.half_up {
            true => T::from_double((scaled + T::from_double(0.5)).to_double().floor()),
            false => T::from_double(scaled.to_double().round_ties_even()),
        };
        rounded * scale.inverse
    }
}

fn smaller_larger<T: Real>(value: T, scale: &Scale<T>) -> T {
    let value = if value > scale.max { scale.max } else { value };
    if value < scale.min { scale.min } else { value }
}

struct Scale<T> {
    min: T,
    max: T,
    scale: T,
    inverse: T,
}

fn v1_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let rounding = Rounding::read(setup)?;
    let bits = rounding.check_bits(setup.int("num_bits")?, "")?;
    let (min, max) = (setup.float("input_min")?, setup.float("input_max")?);
    if rounding.given && !(min <= max) {
        return Err(invalid!("Invalid range: input_min {min} > input_max {max}"));
    }
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => Ok(unary(move |_, input| {
        let bound = |bound: f32| Tensor::scalar(T::from_double(bound.into()));
        rounded::<T>(rounding, bits, input, &bound(min), &bound(max))
    })))
}

fn v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let rounding = Rounding::read(setup)?;
    let bits = rounding.check_bits(setup.int("num_bits")?, "")?;
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => Ok(many(move |_, mut inputs| {
        let (input, min, max) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let rank = input.shape().rank();
        if rounding.axis < -1 {
            return Err(invalid!("Axis must be at least -1. Found {}", rounding.axis));
        }
        if rounding.axis >= rank as i64 {
            return Err(invalid!("Shape must be at least rank {} but is rank {rank}", rounding.axis + 1));
        }
        Ok(outputs![rounded::<T>(rounding, bits, input, &min, &max)?])
    })))
}

fn v3_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let rounding = Rounding::read(setup)?;
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => Ok(many(move |_, mut inputs| {
        let (input, min, max) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let (bits, rank) = (inputs.tensor(3)?, input.shape().rank() as i64);
        if rounding.axis < -rank.min(1) || rounding.axis >= rank {
            return Err(invalid!(
                "Axis requested is larger than input dimensions. Axis: {} Input Dimensions: {rank}",
                rounding.axis
            ));
        }
        if bits.shape().rank() != 0 {
            return Err(invalid!(
                "Invalid shape. The `num_bits` tensor should be a scalar. Got dimensions: {}",
                bits.shape().rank()
            ));
        }
        let bits = rounding.check_bits(integers(&bits)?[0], "`")?;
        Ok(outputs![rounded::<T>(rounding, bits, input, &min, &max)?])
    })))
}

/// Rounds all elements, with one range for all or one for each index of the axis.
fn rounded<T: Real>(rounding: Rounding, bits: u32, mut input: Tensor, min: &Tensor, max: &Tensor) -> Result<Tensor> {
    let [_, depth, after] = match usize::try_from(rounding.axis) {
        Ok(axis) => around(input.shape(), axis),
        Err(_) => [1, 1, input.elements()],
    };
    let ranges = match rounding.given {
        true => given_ranges::<T>(rounding.axis, depth, min, max)?,
        false => found_ranges::<T>(&input, depth, after)?,
    };
    let scales: Vec<Scale<T>> = ranges.iter().map(|&[min, max]| rounding.scale(bits, min, max)).collect();
    if input.elements() > 0 {
        for (index, run) in input.values_mut::<T>()?.chunks_mut(after).enumerate() {
            let scale = &scales[index % depth];
            run.iter_mut().for_each(|value| *value = rounding.apply(scale, *value));
        }
    }
    Ok(input)
}

fn given_ranges<T: Real>(axis: i64, depth: usize, min: &Tensor, max: &Tensor) -> Result<Vec<[T; 2]>> {
    let (lows, highs) = (min.values::<T>()?, max.values::<T>()?);
    if axis < 0 {
        for (name, bound) in [("input_min", min), ("input_max", max)] {
            if bound.shape().rank() != 0 {
                return Err(invalid!("{name} must be a scalar."));
            }
        }
        if !(lows[0] <= highs[0]) {
            let (min, max) = (lows[0].to_double(), highs[0].to_double());
            return Err(invalid!("Invalid range: input_min {min} > input_max {max}"));
        }
        return Ok(vec![[lows[0], highs[0]]]);
    }
    for (name, bound) in [("input_min_tensor", min), ("input_max_tensor", max)] {
        if bound.shape().rank() != 1 {
            return Err(invalid!("Shape must be rank 1 for {name} when the axis is specified"));
        }
        if bound.elements() != depth {
            return Err(invalid!(
                "{name} has incorrect size, was {} expected {depth} to match dim {axis} of the input {}",
                bound.elements(),
                bound.shape()
            ));
        }
    }
    Ok(lows.iter().zip(highs).map(|(&low, &high)| [low, high]).collect())
}

fn found_ranges<T: Real>(input: &Tensor, depth: usize, after: usize) -> Result<Vec<[T; 2]>> {
    let lowest = T::from_double(f64::NEG_INFINITY);
    let highest = T::from_double(f64::INFINITY);
    let mut ranges = vec![[highest, lowest]; depth];
    if input.elements() > 0 {
        for (index, run) in input.values::<T>()?.chunks(after).enumerate() {
            let [min, max] = &mut ranges[index % depth];
            for &value in run {
                *min = if value < *min { value } else { *min };
                *max = if value > *max { value } else { *max };
            }
        }
    }
    Ok(ranges)
}

fn v4_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let axis = setup.int("axis")?;
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => Ok(many(move |_, mut inputs| {
        let (gradients, input) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let (min, max) = (inputs.tensor(2)?, inputs.tensor(3)?);
        let rank = input.shape().rank();
        if axis < -1 {
            return Err(invalid!("Axis must be at least -1. Found {axis}"));
        }
        if axis >= rank as i64 {
            return Err(invalid!(
                "Axis should be -1 or 0 or a positive value less than {rank}but given axis value was {axis}"
            ));
        }
        if gradients.shape() != input.shape() {
            return Err(invalid!("gradient and input must be the same size"));
        }
        Ok(outputs![inside::<T>(axis, gradients, &input, &min, &max)?, zeros(&min)?, zeros(&min)?])
    })))
}

fn zeros(like: &Tensor) -> Result<Tensor> {
    Tensor::zeros_of(like.dtype(), like.shape())
}

/// The gradients of values inside the range.
fn inside<T: Real>(axis: i64, mut gradients: Tensor, input: &Tensor, min: &Tensor, max: &Tensor) -> Result<Tensor> {
    let [_, depth, after] = match usize::try_from(axis) {
        Ok(axis) => around(input.shape(), axis),
        Err(_) => [1, 1, input.elements()],
    };
    for (name, bound) in [("min", min), ("max", max)] {
        let rank = bound.shape().rank();
        if rank > 1 {
            return Err(invalid!("Input {name} tensor must have dimension 0 or 1. Received {rank}."));
        }
        if axis < 0 && rank != 0 {
            return Err(invalid!("input_{name} must be a scalar if axis is unspecified"));
        }
        if axis >= 0 && rank != 1 {
            return Err(invalid!("Shape must be rank 1 for input_{name}_tensor when the axis is specified"));
        }
        if bound.elements() != depth {
            return Err(invalid!("{name} has incorrect size, expected {depth} was {}", bound.elements()));
        }
    }
    let (lows, highs) = (min.values::<T>()?, max.values::<T>()?);
    if input.elements() > 0 {
        let runs = gradients.values_mut::<T>()?.chunks_mut(after).zip(input.values::<T>()?.chunks(after));
        for (index, (gradients, values)) in runs.enumerate() {
            let range = lows[index % depth]..=highs[index % depth];
            for (gradient, value) in gradients.iter_mut().zip(values) {
                *gradient = *gradient * T::from_double(f64::from(u8::from(range.contains(value))));
            }
        }
    }
    Ok(gradients)
}
