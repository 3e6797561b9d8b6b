//! Softmax and its logarithm, over the last axis.

use super::rules::{apply, sum_last};
use graph::{Node, Output};
use math::Logit;
use op::shapes::unchanged;
use op::{Ctx, Grad, Grads, Kernel, Op, PLAIN, Setup, ShapeQuery, grads, unary};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Softmax(logits: T) -> softmax: T; T: {half, bfloat16, float, double}",
        shape: of_vectors,
        grad: Grad::Rule(softmax_rule),
        kernel: softmax_kernel,
        facts: PLAIN,
    },
    Op {
        def: "LogSoftmax(logits: T) -> logsoftmax: T; T: {half, bfloat16, float, double}",
        shape: of_vectors,
        grad: Grad::Rule(log_softmax_rule),
        kernel: log_softmax_kernel,
        facts: PLAIN,
    },
];

/// `exp(logits) / sum(exp(logits))` over the last axis.
pub fn softmax(logits: &Output) -> Output {
    apply("Softmax", logits)
}

/// `logits - log(sum(exp(logits)))` over the last axis.
pub fn log_softmax(logits: &Output) -> Output {
    apply("LogSoftmax", logits)
}

/// With y = softmax(x):  dx = (dy - Σ dy y) y.
fn softmax_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let y = op.output(0);
    Ok(grads![(dy - sum_last(&(dy * &y))) * &y])
}

/// With y = log softmax(x):  dx = dy - exp(y) Σ dy.
fn log_softmax_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let softmax = apply("Exp", &op.output(0));
    Ok(grads![dy - sum_last(dy) * softmax])
}

fn of_vectors(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    if query.inputs[0].rank() == Some(0) {
        return Err(invalid!("Shape must be at least rank 1 but is rank 0"));
    }
    unchanged(query)
}

fn softmax_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("T")?, T => Ok(unary(|ctx, x| run::<T>(ctx, x, math::softmax))))
}

fn log_softmax_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("T")?, T => Ok(unary(|ctx, x| run::<T>(ctx, x, math::log_softmax))))
}

fn run<T: Element + Logit>(
    ctx: &Ctx<'_>,
    logits: Tensor,
    rows: fn(&math::Pool, usize, &[T], &mut [T]),
) -> Result<Tensor> {
    let Some(&width) = logits.shape().last() else {
        return Err(invalid!("logits must have >= 1 dimension, got {}", logits.shape()));
    };
    let mut out = Tensor::scratch::<T>(logits.shape())?;
    rows(ctx.pool(), width, logits.values()?, out.values_mut()?);
    Ok(out)
}
