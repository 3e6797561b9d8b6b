//! Cross entropy between labels and the softmax of logits, with its derivative.

use super::rules::{expand_last, sum_last};
use super::softmax::{log_softmax, softmax};
use graph::{Node, Output};
use math::Logit;
use math::elementwise::broadcast_to;
use op::shapes::broadcast_shapes;
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SoftmaxCrossEntropyWithLogits(features: T, labels: T) -> loss: T, backprop: T; \
              T: {half, bfloat16, float, double}",
        shape: dense_shapes,
        grad: Grad::Rules(dense_rule),
        kernel: dense_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseSoftmaxCrossEntropyWithLogits(features: T, labels: Tlabels) -> loss: T, backprop: T; \
              T: {half, bfloat16, float, double}; Tlabels: {int32, int64} = int64",
        shape: sparse_shapes,
        grad: Grad::Rules(sparse_rule),
        kernel: sparse_kernel,
        facts: PLAIN,
    },
];

/// The loss of each row of `[batch, classes]` logits against rows of probabilities.
pub fn softmax_cross_entropy_with_logits(logits: &Output, labels: &Output) -> Output {
    logits.scope().op("SoftmaxCrossEntropyWithLogits").input(logits).input(labels).output()
}

/// The loss of each row of `[batch, classes]` logits against the number of a class.
pub fn sparse_softmax_cross_entropy_with_logits(logits: &Output, labels: &Output) -> Output {
    logits.scope().op("SparseSoftmaxCrossEntropyWithLogits").input(logits).input(labels).output()
}

fn dense_rule(op: &Node, dy: &[Option<Output>]) -> Result<Grads> {
    let logits = op.input(0);
    let labels = dy[0].as_ref().map(|loss| -(expand_last(loss) * log_softmax(&logits)));
    Ok(grads![by_logits(op, dy), labels])
}

fn sparse_rule(op: &Node, dy: &[Option<Output>]) -> Result<Grads> {
    Ok(grads![by_logits(op, dy), NoGradient])
}

/// The second output is the derivative of the first; it changes with the logits as softmax does.
fn by_logits(op: &Node, dy: &[Option<Output>]) -> Option<Output> {
    let first = dy[0].as_ref().map(|loss| expand_last(loss) * op.output(1));
    let second = dy[1].as_ref().map(|backprop| {
        let softmax = softmax(&op.input(0));
        (backprop - sum_last(&(backprop * &softmax))) * softmax
    });
    match (first, second) {
        (Some(first), Some(second)) => Some(first + second),
        (first, second) => first.or(second),
    }
}

fn dense_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let both = broadcast_shapes(&query.inputs[0], &query.inputs[1])?.merge(&PartialShape::of_rank(2))?;
    let batch = both.dims().map_or(-1, |dims| dims[0]);
    Ok(vec![PartialShape::new(&[batch]), both])
}

fn sparse_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let logits = query.inputs[0].merge(&PartialShape::of_rank(2))?;
    let batch = PartialShape::new(&[logits.dims().map_or(-1, |dims| dims[0])]).merge(&query.inputs[1])?;
    let dims = [batch.dims().map_or(-1, |dims| dims[0]), logits.dims().map_or(-1, |dims| dims[1])];
    Ok(vec![batch, PartialShape::new(&dims)])
}

fn dense_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("T")?, T => {
        Ok(many(|ctx, mut inputs| run_dense::<T>(ctx, inputs.tensor(0)?, inputs.tensor(1)?)))
    })
}

fn run_dense<T: Element + Logit>(ctx: &Ctx<'_>, logits: Tensor, labels: Tensor) -> Result<Outputs> {
    let both = common_shape(logits.shape(), labels.shape())?;
    let &[batch, width] = both.dims() else {
        return Err(invalid!("logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional"));
    };
    let (logits, labels) = (widened::<T>(ctx, logits, &both)?, widened::<T>(ctx, labels, &both)?);
    let mut loss = Tensor::zeros::<T>([batch])?;
    let mut backprop = Tensor::scratch::<T>(both)?;
    if width > 0 {
        let (loss, backprop) = (loss.values_mut()?, backprop.values_mut()?);
        math::softmax_cross_entropy::<T>(ctx.pool(), width, logits.values()?, labels.values()?, loss, backprop);
    }
    Ok(outputs![loss, backprop])
}

fn common_shape(logits: &Shape, labels: &Shape) -> Result<Shape> {
    match math::elementwise::Broadcast::new(logits, labels) {
        Some(both) => Ok(Shape::new(both.out_dims())),
        None => Err(invalid!("logits and labels must be broadcastable: logits_size={logits} labels_size={labels}")),
    }
}

fn widened<T: Element>(ctx: &Ctx<'_>, tensor: Tensor, shape: &Shape) -> Result<Tensor> {
    if tensor.shape() == shape {
        return Ok(tensor);
    }
    let mut wide = Tensor::scratch::<T>(shape)?;
    broadcast_to(ctx.pool(), tensor.shape(), shape, tensor.values::<T>()?, wide.values_mut()?);
    Ok(wide)
}

fn sparse_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let labels = setup.dtype("Tlabels")?;
    for_floats!(setup, setup.dtype("T")?, T => match labels {
        DType::I32 => Ok(many(|ctx, mut inputs| run_sparse::<T, i32>(ctx, inputs.tensor(0)?, inputs.tensor(1)?))),
        DType::I64 => Ok(many(|ctx, mut inputs| run_sparse::<T, i64>(ctx, inputs.tensor(0)?, inputs.tensor(1)?))),
        _ => Err(setup.no_kernel()),
    })
}

fn run_sparse<T: Element + Logit, L: Element + Into<i64> + std::fmt::Display>(
    ctx: &Ctx<'_>,
    logits: Tensor,
    labels: Tensor,
) -> Result<Outputs> {
    let &[batch, width] = logits.shape().dims() else {
        return Err(invalid!("logits must be 2-D, but got shape {}", logits.shape()));
    };
    let &[count] = labels.shape().dims() else {
        return Err(invalid!("labels must be 1-D, but got shape {}", labels.shape()));
    };
    if count != batch {
        return Err(invalid!(
            "logits and labels must have the same first dimension, got logits shape {} and labels shape {}",
            logits.shape(),
            labels.shape()
        ));
    }
    if width == 0 {
        return Err(invalid!("Must have at least one class, but got logits shape {}", logits.shape()));
    }
    let classes = labels.values::<L>()?;
    check_classes(classes, width)?;
    let mut loss = Tensor::scratch::<T>([batch])?;
    let mut backprop = Tensor::scratch::<T>(logits.shape())?;
    math::sparse_softmax_cross_entropy(
        ctx.pool(),
        width,
        logits.values::<T>()?,
        |row| classes[row].into() as usize,
        loss.values_mut()?,
        backprop.values_mut()?,
    );
    Ok(outputs![loss, backprop])
}

/// An error that names the lowest label if it is negative, else the highest if that is too high.
fn check_classes<L: Copy + Into<i64> + std::fmt::Display>(labels: &[L], width: usize) -> Result<()> {
    let values = || labels.iter().map(|&label| label.into());
    let (lowest, highest) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
    if lowest >= 0 && highest < width as i64 {
        return Ok(());
    }
    let all: Vec<String> = labels.iter().map(|label| label.to_string()).collect();
    Err(invalid!(
        "Received a label value of {} which is outside the valid range of [0, {width}).  Label values: {}",
        if lowest < 0 { lowest } else { highest },
        all.join(" ")
    ))
}
