//! The gradient rules of max and average pooling, shared by images and volumes.

use super::rules::{copied, shape_of};
use graph::{Node, Output};
use op::{Grads, NoGradient, grads};
use status::Result;

/// The attributes that a pooling op shares with its derivatives.
const ATTRS: &[&str] = &["ksize", "strides", "padding", "data_format"];

/// The gradient of max pooling by the op `grad_op`, with further attributes to copy.
pub(super) fn of_max(grad_op: &str, op: &Node, dy: &Output, further: &[&str]) -> Result<Grads> {
    let builder = dy.scope().op(grad_op).input(&op.input(0)).input(&op.output(0)).input(dy);
    Ok(grads![copied(copied(builder, op, ATTRS)?, op, further)?.output()])
}

/// The gradient of a derivative of max pooling: linear in the incoming gradient, almost everywhere constant in the
/// input and the output.
pub(super) fn of_max_grad(grad_op: &str, op: &Node, dy: &Output) -> Result<Grads> {
    let builder = dy.scope().op(grad_op).input(&op.input(0)).input(&op.input(1)).input(dy);
    Ok(grads![NoGradient, NoGradient, copied(builder, op, ATTRS)?.output()])
}

/// The gradient of average pooling.
pub(super) fn of_average(grad_op: &str, op: &Node, dy: &Output) -> Result<Grads> {
    let builder = dy.scope().op(grad_op).input(&shape_of(&op.input(0))).input(dy);
    Ok(grads![copied(builder, op, ATTRS)?.output()])
}

/// The gradient of the derivative of average pooling, which is average pooling itself because both are linear.
pub(super) fn of_average_grad(pool_op: &str, op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![NoGradient, copied(dy.scope().op(pool_op).input(dy), op, ATTRS)?.output()])
}
