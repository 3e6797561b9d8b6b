//! Normalisation of every channel by its mean and variance over the batch.

use super::geometry::{Attrs, Layout};
use super::rules::{constant, copied};
use graph::{AttrValue, Node, Output};
use math::batch_norm::Normal;
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Shape, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "FusedBatchNorm(x: T, scale: T, offset: T, mean: T, variance: T) -> y: T, batch_mean: T, \
              batch_variance: T, reserve_space_1: T, reserve_space_2: T; T: {float}; epsilon: float = 1e-04; \
              exponential_avg_factor: float = 1.0; data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; \
              is_training: bool = true",
        shape,
        grad: Grad::Rules(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "FusedBatchNormV2(x: T, scale: U, offset: U, mean: U, variance: U) -> y: T, batch_mean: U, \
              batch_variance: U, reserve_space_1: U, reserve_space_2: U; T: {half, bfloat16, float}; U: {float}; \
              epsilon: float = 1e-04; exponential_avg_factor: float = 1.0; \
              data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; is_training: bool = true",
        shape,
        grad: Grad::Rules(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "FusedBatchNormV3(x: T, scale: U, offset: U, mean: U, variance: U) -> y: T, batch_mean: U, \
              batch_variance: U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U; \
              T: {half, bfloat16, float}; U: {bfloat16, float}; epsilon: float = 1e-04; \
              exponential_avg_factor: float = 1.0; \
              data_format: {\"NHWC\", \"NCHW\", \"NDHWC\", \"NCDHW\"} = \"NHWC\"; is_training: bool = true",
        shape,
        grad: Grad::Rules(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "_FusedBatchNormEx(x: T, scale: U, offset: U, mean: U, variance: U, side_input: num_side_inputs * T) -> \
              y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U; \
              T: {half, float, bfloat16}; U: {float}; epsilon: float = 1e-04; exponential_avg_factor: float = 1.0; \
              num_side_inputs: int >= 0 = 0; activation_mode: string = \"Identity\"; \
              data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; is_training: bool = true",
        shape,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
];

/// The results of a batch normalisation in training, besides those that only its gradient needs.
pub struct BatchNorm {
    /// The normalised input.
    pub y: Output,
    /// Mean over the batch.
    pub mean: Output,
    /// Variance over the batch, unbiased.
    pub variance: Output,
}

/// `x` normalised by channel over its batch, then scaled and shifted; channels last.
pub fn fused_batch_norm(x: &Output, scale: &Output, offset: &Output, epsilon: f32) -> BatchNorm {
    let none = constant(x.scope(), Tensor::vector::<f32>(&[]));
    let builder = x.scope().op("FusedBatchNormV3").input(x).input(scale).input(offset).input(&none).input(&none);
    let node = builder.attr("epsilon", epsilon).node();
    BatchNorm { y: node.output(0), mean: node.output(1), variance: node.output(2) }
}

fn rule(op: &Node, dy: &[Option<Output>]) -> Result<Grads> {
    let Some(dy) = &dy[0] else { return Ok(grads![NoGradient, NoGradient, NoGradient, NoGradient, NoGradient]) };
    let training = op.attr_bool("is_training")?;
    let format = match op.attr("data_format")? {
        AttrValue::String(format) => String::from_utf8_lossy(&format).into_owned(),
        _ => String::new(),
    };
    // TensorFlow's kernel for inference supports only channels last.
    let (to, from, wanted) = match (training, format.as_str()) {
        (false, "NCHW") => (vec![0, 2, 3, 1], vec![0, 3, 1, 2], "NHWC"),
        (false, "NCDHW") => (vec![0, 2, 3, 4, 1], vec![0, 4, 1, 2, 3], "NDHWC"),
        _ => (vec![], vec![], format.as_str()),
    };
    let (mean, variance) = if training { (op.output(3), op.output(4)) } else { (op.input(3), op.input(4)) };
    let name = op.op().replace("FusedBatchNorm", "FusedBatchNormGrad");
    let mut builder = dy.scope().op(&name).input(&moved(dy, &to)).input(&moved(&op.input(0), &to));
    builder = builder.input(&op.input(1)).input(&mean).input(&variance);
    if op.op().ends_with("V3") {
        builder = builder.input(&op.output(5));
    }
    let node = copied(builder, op, &["epsilon", "is_training"])?.attr("data_format", wanted).node();
    Ok(grads![moved(&node.output(0), &from), node.output(1), node.output(2), NoGradient, NoGradient])
}

/// The tensor with its axes in this order; itself if there is none.
fn moved(x: &Output, order: &[i32]) -> Output {
    if order.is_empty() {
        return x.clone();
    }
    let order = constant(x.scope(), Tensor::vector(order));
    x.scope().op("Transpose").input(x).input(&order).output()
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let x = &query.inputs[0];
    let mut channels = PartialShape::of_rank(1);
    if let Some(rank) = x.rank() {
        if rank != 4 && rank != 5 {
            return Err(invalid!("Shape must be rank 4 but is rank {rank}"));
        }
        let axis = Layout::of(query, rank - 2)?.channel_axis();
        channels = PartialShape::new(&[x.dims().map_or(-1, |dims| dims[axis])]);
    }
    for input in &query.inputs[1..3] {
        channels = channels.merge(input)?;
    }
    let mut shapes = vec![channels; query.outputs];
    shapes[0] = x.clone();
    if query.outputs > 5 {
        shapes[5] = PartialShape::unknown();
    }
    Ok(shapes)
}

/// Reads the attributes of a node.
#[derive(Clone, Copy)]
struct Config {
    epsilon: f32,
    factor: f32,
    channels_first: bool,
    training: bool,
    reserve: bool,
    relu: bool,
    side: bool,
    wide: DType,
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let op = setup.def().op.as_str();
    let config = Config {
        epsilon: setup.float("epsilon")?,
        factor: setup.float("exponential_avg_factor")?,
        channels_first: setup.text("data_format").starts_with("NC"),
        training: setup.bool("is_training")?,
        reserve: op.ends_with("V3") || op.ends_with("Ex"),
        relu: setup.text("activation_mode") == "Relu",
        side: setup.int("num_side_inputs").is_ok_and(|count| count > 0),
        wide: setup.dtype("U").unwrap_or(DType::F32),
    };
    for_types!(setup, setup.dtype("T")?, [f32, f16, bf16], T => {
        Ok(many(move |ctx, inputs| run::<T>(ctx, config, inputs)))
    })
}

/// Checked operands, channels last.
struct Operands {
    layout: Layout,
    x: Tensor,
    scale: Vec<f32>,
    offset: Vec<f32>,
    mean: Vec<f32>,
    variance: Vec<f32>,
}

fn run<T: Element + Normal>(ctx: &Ctx<'_>, config: Config, mut inputs: Inputs) -> Result<Outputs> {
    let operands = checked(config, &mut inputs)?;
    let channels = Shape::from([operands.scale.len()]);
    let layout = operands.layout;
    let x = layout.to_channels_last::<T>(ctx, operands.x.clone())?;
    let moments = normal_moments::<T>(ctx, config, &operands, &x)?;
    let factor: Vec<f32> = (moments.by.1.iter().zip(&operands.scale))
        .map(|(variance, scale)| scale / (variance + config.epsilon).sqrt())
        .collect();
    let mut y = Tensor::scratch::<T>(x.shape())?;
    let relu = config.relu && !config.side;
    let offset = &operands.offset;
    math::batch_norm::normalize::<T>(ctx.pool(), x.values()?, &moments.by.0, &factor, offset, relu, y.values_mut()?);
    let mut y = layout.from_channels_last::<T>(ctx, y)?;
    if config.side {
        y = add_side::<T>(ctx, y, inputs.tensor(5)?, config.relu)?;
    }
    let vector = |values: &[f32]| from_f32(config.wide, &channels, values);
    let (running, saved) = (&moments.running, &moments.by);
    let mut outputs = outputs![y, vector(&running.0)?, vector(&running.1)?, vector(&saved.0)?, vector(&saved.1)?];
    if config.reserve {
        outputs.push(from_f32(config.wide, &Shape::scalar(), &[0.0])?.into());
    }
    Ok(outputs)
}

fn add_side<T: Element + Normal>(ctx: &Ctx<'_>, y: Tensor, side: Tensor, relu: bool) -> Result<Tensor> {
    if side.shape() != y.shape() {
        return Err(invalid!("side_input shape must be equal to input shape: {} != {}", side.shape(), y.shape()));
    }
    super::loops::zip::<T>(ctx, 0.4, y, side, move |y, side| {
        let sum = y.to_sum() + side.to_sum();
        T::from_sum(if relu && sum < 0.0 { 0.0 } else { sum })
    })
}

/// The moments that normalise, and those that are returned.
struct Moments {
    by: (Vec<f32>, Vec<f32>),
    running: (Vec<f32>, Vec<f32>),
}

fn normal_moments<T: Element + Normal>(
    ctx: &Ctx<'_>,
    config: Config,
    operands: &Operands,
    x: &Tensor,
) -> Result<Moments> {
    let depth = operands.scale.len();
    let given = (operands.mean.clone(), operands.variance.clone());
    if x.elements() == 0 {
        let nan = (vec![f32::NAN; depth], vec![f32::NAN; depth]);
        return Ok(Moments { by: (vec![0.0; depth], vec![0.0; depth]), running: nan });
    }
    if !config.training {
        return Ok(Moments { by: given.clone(), running: given });
    }
    let (mean, variance) = math::batch_norm::moments::<T>(ctx.pool(), depth, x.values()?);
    // The reported variance is unbiased, the one used is not.
    let count = x.elements() / depth;
    let unbiased = count as f32 / (count.max(2) - 1) as f32;
    let blend = |old: &[f32], new: &[f32], adjust: f32| -> Vec<f32> {
        if config.factor == 1.0 {
            return new.iter().map(|new| new * adjust).collect();
        }
        old.iter().zip(new).map(|(old, new)| (1.0 - config.factor) * old + config.factor * adjust * new).collect()
    };
    let running = (blend(&given.0, &mean, 1.0), blend(&given.1, &variance, unbiased));
    Ok(Moments { by: (mean, variance), running })
}

fn checked(config: Config, inputs: &mut Inputs) -> Result<Operands> {
    let x = inputs.tensor(0)?;
    if x.shape().rank() != 4 && x.shape().rank() != 5 {
        return Err(invalid!("input must be 4 or 5-dimensional{}", x.shape()));
    }
    let layout = Layout { channels_first: config.channels_first, spatial: x.shape().rank() - 2 };
    let depth = x.shape()[layout.channel_axis()];
    let mut vectors = Vec::new();
    for (i, name) in ["scale", "offset", "estimated_mean", "estimated_variance"].into_iter().enumerate() {
        let tensor = inputs.tensor(i + 1)?;
        if tensor.shape().rank() != 1 {
            return Err(invalid!("{name} must be 1-dimensional{}", tensor.shape()));
        }
        vectors.push(to_f32(&tensor)?);
    }
    let moments_matter = !config.training || config.factor != 1.0;
    let when = if config.training { "When exponential_avg_factor != 1, " } else { "When is_training=false, " };
    let checks =
        [("", "scale", true), ("", "offset", true), (when, "mean", moments_matter), (when, "variance", moments_matter)];
    for ((when, name, matters), vector) in checks.into_iter().zip(&vectors) {
        if matters && vector.len() != depth {
            return Err(invalid!(
                "{when}{name} must have the same number of elements as the channels of x, got {} and {depth}",
                vector.len()
            ));
        }
    }
    let [scale, offset, mean, variance]: [Vec<f32>; 4] = vectors.try_into().unwrap_or_default();
    Ok(Operands { layout, x, scale, offset, mean, variance })
}

/// Numbers of a float or bfloat16 tensor as `f32`.
pub(super) fn to_f32(tensor: &Tensor) -> Result<Vec<f32>> {
    match tensor.dtype() {
        DType::BF16 => Ok(tensor.values::<bf16>()?.iter().map(|x| x.to_f32()).collect()),
        _ => Ok(tensor.values::<f32>()?.to_vec()),
    }
}

/// A float or bfloat16 tensor of these numbers.
pub(super) fn from_f32(dtype: DType, shape: &Shape, values: &[f32]) -> Result<Tensor> {
    match dtype {
        DType::BF16 => {
            let values: Vec<bf16> = values.iter().map(|&x| bf16::from_f32(x)).collect();
            Tensor::from_slice(shape, &values)
        }
        _ => Tensor::from_slice(shape, values),
    }
}
