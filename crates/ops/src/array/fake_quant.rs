//! The FakeQuantWithMinMax family, which simulates quantized inference during training.

use graph::{Node, Output, ShapeQuery};
use op::shapes::{merged, unchanged};
use op::{Grad, Grads, Kernel, Op, Outputs, PLAIN, Setup, binary, grads, many, outputs, unary};
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "FakeQuantWithMinMaxArgs(inputs: float) -> outputs: float; min: float = -6.0; max: float = 6.0; \
              num_bits: int = 8; narrow_range: bool = false",
        shape: unchanged,
        grad: Grad::Rule(args_rule),
        kernel: args_kernel,
        facts: PLAIN,
    },
    Op {
        def: "FakeQuantWithMinMaxArgsGradient(gradients: float, inputs: float) -> backprops: float; \
              min: float = -6.0; max: float = 6.0; num_bits: int = 8; narrow_range: bool = false",
        shape: merged,
        grad: Grad::Unknown,
        kernel: args_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "FakeQuantWithMinMaxVars(inputs: float, min: float, max: float) -> outputs: float; num_bits: int = 8; \
              narrow_range: bool = false",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| vars_rule("FakeQuantWithMinMaxVarsGradient", op, dy)),
        kernel: |setup| vars_kernel(setup, false),
        facts: PLAIN,
    },
    Op {
        def: "FakeQuantWithMinMaxVarsGradient(gradients: float, inputs: float, min: float, max: float) -> \
              backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float; num_bits: int = 8; \
              narrow_range: bool = false",
        shape: vars_grad_shape,
        grad: Grad::Unknown,
        kernel: |setup| vars_grad_kernel(setup, false),
        facts: PLAIN,
    },
    Op {
        def: "FakeQuantWithMinMaxVarsPerChannel(inputs: float, min: float, max: float) -> outputs: float; \
              num_bits: int = 8; narrow_range: bool = false",
        shape: unchanged,
        grad: Grad::Rule(|op, dy| vars_rule("FakeQuantWithMinMaxVarsPerChannelGradient", op, dy)),
        kernel: |setup| vars_kernel(setup, true),
        facts: PLAIN,
    },
    Op {
        def: "FakeQuantWithMinMaxVarsPerChannelGradient(gradients: float, inputs: float, min: float, max: float) -> \
              backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float; num_bits: int = 8; \
              narrow_range: bool = false",
        shape: vars_grad_shape,
        grad: Grad::Unknown,
        kernel: |setup| vars_grad_kernel(setup, true),
        facts: PLAIN,
    },
];

/// `inputs` as they would be after rounding to `num_bits` between two variables.
pub fn fake_quant_with_min_max_vars(inputs: &Output, min: &Output, max: &Output, num_bits: i64) -> Output {
    let node = inputs.scope().op("FakeQuantWithMinMaxVars").input(inputs).input(min).input(max);
    node.attr("num_bits", num_bits).output()
}

fn args_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let node = dy.scope().op("FakeQuantWithMinMaxArgsGradient").input(dy).input(&op.input(0));
    let names = ["min", "max", "num_bits", "narrow_range"];
    let node = names.into_iter().try_fold(node, |node, name| op.attr(name).map(|value| node.attr(name, value)))?;
    Ok(grads![node.output()])
}

fn vars_rule(gradient: &str, op: &Node, dy: &Output) -> Result<Grads> {
    let [inputs, min, max] = op.inputs()?;
    let node = dy.scope().op(gradient).input(dy).input(&inputs).input(&min).input(&max);
    let node = node.attr("num_bits", op.attr("num_bits")?).attr("narrow_range", op.attr("narrow_range")?).node();
    Ok(grads![node.output(0), node.output(1), node.output(2)])
}

fn vars_grad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let inputs = query.inputs[0].merge(&query.inputs[1])?;
    let range = query.inputs[2].merge(&query.inputs[3])?;
    Ok(vec![inputs, range.clone(), range])
}

/// The lowest and highest quantized value.
fn steps(setup: &Setup<'_>) -> Result<[f32; 2]> {
    let (bits, narrow) = (setup.int("num_bits")?, setup.bool("narrow_range")?);
    if !(2..=16).contains(&bits) {
        return Err(invalid!("num_bits must be between 2 and 16, inclusive"));
    }
    Ok([f32::from(u8::from(narrow)), ((1_u32 << bits) - 1) as f32])
}

/// A range, adjusted so that zero is one of its steps.
#[derive(Clone, Copy)]
struct Nudged {
    min: f32,
    max: f32,
    scale: f32,
    inverse: f32,
    zero: f32,
}

impl Nudged {
    /// The range from `min` to `max`; none if both are zero.
    fn new(min: f32, max: f32, [low, high]: [f32; 2]) -> Option<Nudged> {
        if min == 0.0 && max == 0.0 {
            return None;
        }
        let scale = (max - min) / (high - low);
        let inverse = (high - low) / (max - min);
        let zero_point = (low - min / scale).clamp(low, high).round();
        let (min, max) = ((low - zero_point) * scale, (high - zero_point) * scale);
        Some(Nudged { min, max, scale, inverse, zero: (-min * inverse + 0.5).floor() })
    }

    /// The nearest step.
    fn quantized(&self, value: f32) -> f32 {
        let shifted = value.min(self.max).max(self.min) - self.min;
        (shifted * self.inverse - self.zero + 0.5).floor() * self.scale
    }

    /// The nearest step, found by a division: with one range for all, TensorFlow rounds so.
    fn quantized_by_division(&self, value: f32) -> f32 {
        let shifted = value.min(self.max).max(self.min) - self.min;
        (shifted / self.scale - self.zero + 0.5).floor() * self.scale
    }
}

fn args(setup: &Setup<'_>) -> Result<Option<Nudged>> {
    let (min, max) = (setup.float("min")?, setup.float("max")?);
    if min >= max || min.is_nan() || max.is_nan() {
        return Err(invalid!("min has to be smaller than max, was: {min} >= {max}"));
    }
    Ok(Nudged::new(min, max, steps(setup)?))
}

fn args_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let range = args(setup)?;
    Ok(unary(move |_, mut inputs| {
        for value in inputs.values_mut::<f32>()? {
            *value = range.map_or(0.0, |range| range.quantized(*value));
        }
        Ok(inputs)
    }))
}

fn args_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (range, name) = (args(setup)?, setup.name().to_string());
    Ok(binary(move |_, mut gradients, inputs| {
        if gradients.shape() != inputs.shape() {
            return Err(invalid!(
                "Inputs to operation {name} of type FakeQuantWithMinMaxArgsGradient must have the same size and shape.  \
                 Input 0: {} != input 1: {}",
                gradients.shape(),
                inputs.shape()
            ));
        }
        for (gradient, value) in gradients.values_mut::<f32>()?.iter_mut().zip(inputs.values::<f32>()?) {
            *gradient *= f32::from(u8::from(range.is_none_or(|range| (range.min..=range.max).contains(value))));
        }
        Ok(gradients)
    }))
}

fn check_alike(gradients: &Tensor, inputs: &Tensor) -> Result<()> {
    match gradients.shape() == inputs.shape() {
        true => Ok(()),
        false => Err(invalid!("gradient and input must be the same size")),
    }
}

/// The ranges of all channels; one for all if there is one only.
fn ranges(inputs: &Tensor, min: &Tensor, max: &Tensor, steps: [f32; 2], channels: bool) -> Result<Vec<Option<Nudged>>> {
    let rank = usize::from(channels);
    let depth = inputs.shape().last().copied().unwrap_or(1);
    for (name, bound) in [("min", min), ("max", max)] {
        if bound.shape().rank() != rank {
            return Err(invalid!("`{name}` must be rank {rank} but is rank {}", bound.shape().rank()));
        }
        if channels && bound.elements() != depth {
            return Err(invalid!("{name} has incorrect size, expected {depth} was {}", bound.elements()));
        }
    }
    if channels && inputs.shape().rank() == 0 {
        return Err(invalid!("inputs must have at least one dimension"));
    }
    let bounds = min.values::<f32>()?.iter().zip(max.values::<f32>()?);
    Ok(bounds.map(|(&min, &max)| Nudged::new(min, max, steps)).collect())
}

fn vars_kernel(setup: &Setup<'_>, channels: bool) -> Result<Kernel> {
    let steps = steps(setup)?;
    Ok(many(move |_, mut values| {
        let (mut inputs, min, max) = (values.tensor(0)?, values.tensor(1)?, values.tensor(2)?);
        let ranges = ranges(&inputs, &min, &max, steps, channels)?;
        if inputs.elements() > 0 {
            for row in inputs.values_mut::<f32>()?.chunks_mut(ranges.len()) {
                for (value, range) in row.iter_mut().zip(&ranges) {
                    *value = match range {
                        Some(range) if channels => range.quantized(*value),
                        Some(range) => range.quantized_by_division(*value),
                        None => 0.0,
                    };
                }
            }
        }
        Ok(outputs![inputs])
    }))
}

fn vars_grad_kernel(setup: &Setup<'_>, channels: bool) -> Result<Kernel> {
    let steps = steps(setup)?;
    Ok(many(move |_, mut values| {
        let (gradients, inputs) = (values.tensor(0)?, values.tensor(1)?);
        check_alike(&gradients, &inputs)?;
        let (min, max) = (values.tensor(2)?, values.tensor(3)?);
        let ranges = ranges(&inputs, &min, &max, steps, channels)?;
        run_vars_grad(gradients, &inputs, &min, &ranges)
    }))
}

/// The gradient of an element inside the range is passed to the input; otherwise it is added to that of the bound.
fn run_vars_grad(mut gradients: Tensor, inputs: &Tensor, min: &Tensor, ranges: &[Option<Nudged>]) -> Result<Outputs> {
    let (mut below, mut above) = (vec![0_f64; ranges.len()], vec![0_f64; ranges.len()]);
    if gradients.elements() > 0 {
        let rows = gradients.values_mut::<f32>()?.chunks_mut(ranges.len());
        for (gradients, inputs) in rows.zip(inputs.values::<f32>()?.chunks(ranges.len())) {
            for (channel, (gradient, &value)) in gradients.iter_mut().zip(inputs).enumerate() {
                let Some(range) = ranges[channel] else { continue };
                if value < range.min {
                    below[channel] += f64::from(*gradient);
                } else if value > range.max {
                    above[channel] += f64::from(*gradient);
                }
                if !(range.min..=range.max).contains(&value) {
                    *gradient *= 0.0;
                }
            }
        }
    }
    let bound =
        |sums: Vec<f64>| Tensor::from_slice(min.shape(), &sums.into_iter().map(|sum| sum as f32).collect::<Vec<_>>());
    Ok(outputs![gradients, bound(below)?, bound(above)?])
}
