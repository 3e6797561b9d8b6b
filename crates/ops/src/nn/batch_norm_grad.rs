//! The derivative of batch normalisation.

use super::batch_norm::to_f32;
use super::geometry::{Attrs, Layout};
use super::rules::{apply, constant};
use graph::{AttrValue, Node, Output};
use math::batch_norm::{GradSums, Normal, grad_input, grad_sums};
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, internal, invalid};
use tensor::{DType, Element, PartialShape, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "FusedBatchNormGrad(y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T) -> \
              x_backprop: T, scale_backprop: T, offset_backprop: T, reserve_space_3: T, reserve_space_4: T; \
              T: {float}; epsilon: float = 1e-04; data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; \
              is_training: bool = true",
        shape,
        grad: Grad::Rules(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "FusedBatchNormGradV2(y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U) -> \
              x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_3: U, reserve_space_4: U; \
              T: {half, bfloat16, float}; U: {float}; epsilon: float = 1e-04; \
              data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; is_training: bool = true",
        shape,
        grad: Grad::Rules(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "FusedBatchNormGradV3(y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U, \
              reserve_space_3: U) -> x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_4: U, \
              reserve_space_5: U; T: {half, bfloat16, float}; U: {float}; epsilon: float = 1e-04; \
              data_format: {\"NHWC\", \"NCHW\", \"NDHWC\", \"NCDHW\"} = \"NHWC\"; is_training: bool = true",
        shape,
        grad: Grad::Rules(rule),
        kernel,
        facts: PLAIN,
    },
];

/// Pieces of the graph that both cases of the rule are made of, in float, shaped so that they broadcast.
struct Pieces {
    axes: Output,
    count: Output,
    grad: Output,
    scale: Output,
    /// `x` less its mean, and one over the standard deviation.
    centered: Output,
    inverse: Output,
    /// Gradients of the three outputs.
    by_input: Output,
    by_scale: Output,
    by_offset: Output,
}

/// With g = dy, z = x - E x, r = 1/sqrt(var + ε), the outputs are
/// dx = s r (g - E g - z r² E[g z]),  ds = r Σ g z,  db = Σ g;  without training r and the mean are constants and
/// dx = s r g. Given A, B, C for the three, their weighted sum is differentiated by g, x and s.
fn rule(op: &Node, dy: &[Option<Output>]) -> Result<Grads> {
    let pieces = Pieces::of(op, dy)?;
    let [by_grad, by_x, by_scale] = match op.attr_bool("is_training")? {
        true => pieces.training(),
        false => pieces.frozen(),
    };
    let dtype = op.input(0).dtype();
    let narrow = |x: Output| x.scope().op("Cast").input(&x).attr("DstT", dtype).output();
    let flat = constant(op.scope(), Tensor::vector(&[-1i32]));
    let by_scale = by_scale.scope().op("Reshape").input(&by_scale).input(&flat).output();
    let mut grads = grads![narrow(by_grad), narrow(by_x), by_scale, NoGradient, NoGradient];
    grads.resize(op.all_inputs().len(), None);
    Ok(grads)
}

impl Pieces {
    fn of(op: &Node, dy: &[Option<Output>]) -> Result<Pieces> {
        let [grad, x, scale, mean, variance] = std::array::from_fn(|i| op.input(i));
        let scope = op.scope();
        let format = match op.attr("data_format")? {
            AttrValue::String(format) => String::from_utf8_lossy(&format).into_owned(),
            _ => String::new(),
        };
        let rank = format.len() as i32;
        let channel = if format.starts_with("NC") { 1 } else { rank - 1 };
        let axes: Vec<i32> = (0..rank).filter(|&axis| axis != channel).collect();
        let spread: Vec<i32> = (0..rank).map(|axis| if axis == channel { -1 } else { 1 }).collect();
        let spread = constant(scope, Tensor::vector(&spread));
        let by_channel = |x: &Output| scope.op("Reshape").input(x).input(&spread).output();
        let wide = |x: &Output| scope.op("Cast").input(x).attr("DstT", DType::F32).output();
        let given = |i: usize, like: &Output| dy[i].clone().unwrap_or_else(|| apply("ZerosLike", like));
        let AttrValue::Float(epsilon) = op.attr("epsilon")? else {
            return Err(internal!("attr 'epsilon' of {} is not of type 'float'", op.name()));
        };
        let x = wide(&x);
        let elements = apply("Size", &x);
        let elements = wide(&elements) / wide(&apply("Size", &scale));
        Ok(Pieces {
            axes: constant(scope, Tensor::vector(&axes)),
            count: elements,
            grad: wide(&grad),
            centered: &x - by_channel(&mean),
            inverse: apply("Rsqrt", &(by_channel(&variance) + f64::from(epsilon))),
            by_input: wide(&given(0, &op.input(1))),
            by_scale: by_channel(&given(1, &scale)),
            by_offset: by_channel(&given(2, &scale)),
            scale: by_channel(&scale),
        })
    }

    fn sum(&self, x: &Output) -> Output {
        x.scope().op("Sum").input(x).input(&self.axes).attr("keep_dims", true).output()
    }

    fn mean(&self, x: &Output) -> Output {
        x.scope().op("Mean").input(x).input(&self.axes).attr("keep_dims", true).output()
    }

    fn training(&self) -> [Output; 3] {
        let (g, z, r, s, n) = (&self.grad, &self.centered, &self.inverse, &self.scale, &self.count);
        let (a, b, c) = (&self.by_input, &self.by_scale, &self.by_offset);
        let square = r * r;
        let (gz, az) = (self.mean(&(g * z)), self.mean(&(a * z)));
        let by_grad = s * r * (a - self.mean(a) - z * &square * &az) + b * r * z + c;
        let unscaled = r * (g - self.mean(g) - z * &square * &gz);
        let by_scale = self.sum(&(a * unscaled));
        // Through z with r held, through r, and then through the mean in z.
        let cube = &square * r;
        let direct = b * r * g - s * &cube * (a * &gz + &az * g);
        let spread = self.mean(&(a * (g - self.mean(g))));
        let by_r = n * (s * (spread - &square * &az * &gz * 3.0) + b * &gz);
        let by_z = direct - by_r * cube * z / n;
        let by_x = &by_z - self.mean(&by_z);
        [by_grad, by_x, by_scale]
    }

    fn frozen(&self) -> [Output; 3] {
        let (g, z, r, s) = (&self.grad, &self.centered, &self.inverse, &self.scale);
        let (a, b, c) = (&self.by_input, &self.by_scale, &self.by_offset);
        [a * s * r + b * r * z + c, b * r * g, self.sum(&(a * g * r))]
    }
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let x = query.inputs[0].merge(&query.inputs[1])?;
    let channels = PartialShape::of_rank(1).merge(&query.inputs[2])?;
    Ok(vec![x, channels.clone(), channels, PartialShape::new(&[0]), PartialShape::new(&[0])])
}

/// Reads the attributes of a node.
#[derive(Clone, Copy)]
struct Config {
    epsilon: f32,
    channels_first: bool,
    training: bool,
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let config = Config {
        epsilon: setup.float("epsilon")?,
        channels_first: setup.text("data_format").starts_with("NC"),
        training: setup.bool("is_training")?,
    };
    for_types!(setup, setup.dtype("T")?, [f32, f16, bf16], T => {
        Ok(many(move |ctx, inputs| run::<T>(ctx, config, inputs)))
    })
}

fn run<T: Element + Normal>(ctx: &Ctx<'_>, config: Config, mut inputs: Inputs) -> Result<Outputs> {
    let (dy, x) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let layout = checked_layout(config, &dy, &x)?;
    let depth = x.shape()[layout.channel_axis()];
    let [scale, mean, variance] = vectors(&mut inputs, depth)?;
    let (dy, x) = (layout.to_channels_last::<T>(ctx, dy)?, layout.to_channels_last::<T>(ctx, x)?);
    let sums = grad_sums::<T>(ctx.pool(), dy.values()?, x.values()?, &mean);
    let inverse: Vec<f32> = variance.iter().map(|variance| 1.0 / (variance + config.epsilon).sqrt()).collect();
    let [a, b, c] = coefficients(config, x.elements() / depth.max(1), &scale, &inverse, &sums);
    let mut dx = Tensor::scratch::<T>(x.shape())?;
    grad_input::<T>(ctx.pool(), dy.values()?, x.values()?, &mean, [&a, &b, &c], dx.values_mut()?);
    let by_scale: Vec<f32> = sums.product.iter().zip(&inverse).map(|(sum, inverse)| sum * inverse).collect();
    let nothing = Tensor::zeros::<f32>([0])?;
    Ok(outputs![
        layout.from_channels_last::<T>(ctx, dx)?,
        Tensor::vector(&by_scale),
        Tensor::vector(&sums.grad),
        nothing.clone(),
        nothing
    ])
}

/// The numbers by channel with which `dx = dy a + (x - mean) b + c`.
fn coefficients(config: Config, count: usize, scale: &[f32], inverse: &[f32], sums: &GradSums) -> [Vec<f32>; 3] {
    let a: Vec<f32> = scale.iter().zip(inverse).map(|(scale, inverse)| scale * inverse).collect();
    if !config.training {
        return [a, vec![0.0; scale.len()], vec![0.0; scale.len()]];
    }
    let count = count.max(1) as f32;
    let by_channel = |i: usize| -a[i] * inverse[i] * inverse[i] * (sums.product[i] / count);
    let b = (0..a.len()).map(by_channel).collect();
    let c = a.iter().zip(&sums.grad).map(|(a, grad)| -a * (grad / count)).collect();
    [a, b, c]
}

fn checked_layout(config: Config, dy: &Tensor, x: &Tensor) -> Result<Layout> {
    for tensor in [dy, x] {
        if tensor.shape().rank() != 4 && tensor.shape().rank() != 5 {
            return Err(invalid!("input must be 4 or 5-dimensional{}", tensor.shape()));
        }
    }
    if x.shape() != dy.shape() {
        return Err(invalid!(
            "x and y_backprop must have same shape, but x has shape {} and y_backprop has shape {}",
            x.shape(),
            dy.shape()
        ));
    }
    Ok(Layout { channels_first: config.channels_first, spatial: x.shape().rank() - 2 })
}

/// Scale, mean and variance.
fn vectors(inputs: &mut Inputs, depth: usize) -> Result<[Vec<f32>; 3]> {
    let names = [("scale", "scale"), ("saved mean", "reserve_space_1"), ("saved variance", "reserve_space_2")];
    let mut vectors = Vec::new();
    for (i, (what, name)) in names.into_iter().enumerate() {
        let tensor = inputs.tensor(i + 2)?;
        if tensor.shape().rank() != 1 {
            return Err(invalid!("{what} must be 1-dimensional{}", tensor.shape()));
        }
        if tensor.elements() != depth {
            return Err(invalid!(
                "{name} must have the same number of elements as the channels of x, got {} and {depth}",
                tensor.elements()
            ));
        }
        vectors.push(to_f32(&tensor)?);
    }
    vectors.try_into().map_err(|_| internal!("three vectors"))
}
