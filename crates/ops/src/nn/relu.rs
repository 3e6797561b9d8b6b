//! Relu and its derivative.

use graph::{Node, Output};
use op::shapes::{merged, unchanged};
use op::{Grad, Grads, Kernel, Op, Setup, binary, grads, unary};
use status::{Result, invalid};
use tensor::{Element, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Relu(features: T) -> activations: T; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, \
              uint16, half, uint32, uint64, qint8}",
        shape: unchanged,
        grad: Grad::Rule(relu_rule),
        kernel: relu_kernel,
    },
    Op {
        def: "ReluGrad(gradients: T, features: T) -> backprops: T; T: realnumbertype",
        shape: merged,
        grad: Grad::Rule(relu_grad_rule),
        kernel: relu_grad_kernel,
    },
];

/// `max(features, 0)`, element by element.
pub fn relu(features: &Output) -> Output {
    features.scope().op("Relu").input(features).output()
}

/// Passes `gradients` where `features` is positive.
pub fn relu_grad(gradients: &Output, features: &Output) -> Output {
    features.scope().op("ReluGrad").input(gradients).input(features).output()
}

fn relu_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![relu_grad(dy, &op.output(0))])
}

/// The derivative is linear in the gradients and, almost everywhere, constant in the features.
fn relu_grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let features = op.input(1);
    Ok(grads![relu_grad(dy, &features), op::NoGradient])
}

fn relu_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_reals!(setup, setup.dtype("T")?, T => Ok(unary(|_, features| run_relu::<T>(features))))
}

fn relu_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_reals!(setup, setup.dtype("T")?, T => Ok(binary(|_, gradients, features| run_relu_grad::<T>(gradients, features))))
}

fn run_relu<T: Element + PartialOrd>(mut features: Tensor) -> Result<Tensor> {
    let zero = T::default();
    for value in features.values_mut::<T>()? {
        // A NaN is not below zero, and so stays: as TensorFlow has it.
        *value = if *value < zero { zero } else { *value };
    }
    Ok(features)
}

fn run_relu_grad<T: Element + PartialOrd>(mut gradients: Tensor, features: Tensor) -> Result<Tensor> {
    if gradients.shape() != features.shape() {
        return Err(invalid!(
            "Inputs to operation ReluGrad of type ReluGrad must have the same size and shape.  Input 0: {} != input 1: {}",
            gradients.shape(),
            features.shape()
        ));
    }
    let zero = T::default();
    for (gradient, &feature) in gradients.values_mut::<T>()?.iter_mut().zip(features.values::<T>()?) {
        *gradient = if feature > zero { *gradient } else { zero };
    }
    Ok(gradients)
}
