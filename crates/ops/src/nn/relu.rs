//! Relu, Relu6, LeakyRelu and their derivatives.

use super::loops::{Place, map, zip};
use graph::{AttrValue, Node, Output};
use math::elementwise::cost::SIMPLE;
use math::function::{Number, Ordered, Real};
use math::fused::Unary;
use op::shapes::{merged, unchanged};
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads, unary};
use status::Result;
use tensor::Element;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Relu(features: T) -> activations: T; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, \
              uint16, half, uint32, uint64, qint8}",
        shape: unchanged,
        grad: Grad::Rule(relu_rule),
        kernel: relu_kernel,
        facts: PLAIN.unary(Unary::Relu).activation(),
    },
    Op {
        def: "ReluGrad(gradients: T, features: T) -> backprops: T; T: realnumbertype",
        shape: merged,
        grad: Grad::Rule(relu_grad_rule),
        kernel: relu_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Relu6(features: T) -> activations: T; T: realnumbertype",
        shape: unchanged,
        grad: Grad::Rule(relu6_rule),
        kernel: relu6_kernel,
        facts: PLAIN.unary(Unary::Relu6).activation(),
    },
    Op {
        def: "Relu6Grad(gradients: T, features: T) -> backprops: T; T: realnumbertype",
        shape: merged,
        grad: Grad::Rule(relu6_grad_rule),
        kernel: relu6_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "LeakyRelu(features: T) -> activations: T; alpha: float = 0.2; \
              T: {half, bfloat16, float, double} = float",
        shape: unchanged,
        grad: Grad::Rule(leaky_relu_rule),
        kernel: leaky_relu_kernel,
        facts: PLAIN.activation(),
    },
    Op {
        def: "LeakyReluGrad(gradients: T, features: T) -> backprops: T; alpha: float = 0.2; \
              T: {half, bfloat16, float, double} = float",
        shape: merged,
        grad: Grad::Rule(leaky_relu_grad_rule),
        kernel: leaky_relu_grad_kernel,
        facts: PLAIN,
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

/// `min(max(features, 0), 6)`, element by element.
pub fn relu6(features: &Output) -> Output {
    features.scope().op("Relu6").input(features).output()
}

/// Passes `gradients` where `features` is between 0 and 6.
pub fn relu6_grad(gradients: &Output, features: &Output) -> Output {
    features.scope().op("Relu6Grad").input(gradients).input(features).output()
}

/// `features` where they are positive, `alpha * features` elsewhere.
pub fn leaky_relu(features: &Output, alpha: impl Into<AttrValue>) -> Output {
    features.scope().op("LeakyRelu").input(features).attr("alpha", alpha).output()
}

/// `gradients` where `features` is positive, `alpha * gradients` elsewhere.
pub fn leaky_relu_grad(gradients: &Output, features: &Output, alpha: impl Into<AttrValue>) -> Output {
    features.scope().op("LeakyReluGrad").input(gradients).input(features).attr("alpha", alpha).output()
}

fn relu_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![relu_grad(dy, &op.output(0))])
}

/// The derivative is linear in the gradients and, almost everywhere, constant in the features.
fn relu_grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![relu_grad(dy, &op.input(1)), NoGradient])
}

fn relu6_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![relu6_grad(dy, &op.output(0))])
}

fn relu6_grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![relu6_grad(dy, &op.input(1)), NoGradient])
}

fn leaky_relu_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![leaky_relu_grad(dy, &op.input(0), op.attr("alpha")?)])
}

fn leaky_relu_grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![leaky_relu_grad(dy, &op.input(1), op.attr("alpha")?), NoGradient])
}

fn relu_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if setup.dtype("T")? == tensor::DType::QI8 {
        return Ok(map_kernel::<i8>(relu_of));
    }
    for_reals!(setup, setup.dtype("T")?, T => Ok(map_kernel::<T>(relu_of)))
}

fn relu_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_reals!(setup, setup.dtype("T")?, T => Ok(zip_kernel::<T>(setup, relu_grad_of)))
}

fn relu6_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_reals!(setup, setup.dtype("T")?, T => {
        let six = six();
        Ok(map_kernel::<T>(move |x: T| {
            let x = relu_of(x);
            if x > six { six } else { x }
        }))
    })
}

fn relu6_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_reals!(setup, setup.dtype("T")?, T => {
        let six = six();
        Ok(zip_kernel::<T>(setup, move |dy: T, x: T| {
            dy.mul(if (x > T::ZERO) & (x < six) { T::ONE } else { T::ZERO })
        }))
    })
}

fn leaky_relu_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let alpha = f64::from(setup.float("alpha")?);
    for_floats!(setup, setup.dtype("T")?, T => {
        let alpha = T::from_f64(alpha);
        Ok(map_kernel::<T>(move |x: T| if x > T::ZERO { x } else { x.mul(alpha) }))
    })
}

fn leaky_relu_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let alpha = f64::from(setup.float("alpha")?);
    for_floats!(setup, setup.dtype("T")?, T => {
        let alpha = T::from_f64(alpha);
        Ok(zip_kernel::<T>(setup, move |dy: T, x: T| if x > T::ZERO { dy } else { dy.mul(alpha) }))
    })
}

/// NaN is not below zero, so it is preserved, as in TensorFlow.
#[inline(always)]
fn relu_of<T: Ordered>(x: T) -> T {
    if x < T::ZERO { T::ZERO } else { x }
}

/// A product, and not a choice: an infinite gradient shows even where it does not pass, as in TensorFlow.
#[inline(always)]
fn relu_grad_of<T: Ordered>(dy: T, x: T) -> T {
    dy.mul(if x > T::ZERO { T::ONE } else { T::ZERO })
}

fn six<T: Number>() -> T {
    let three = T::ONE.add(T::ONE).add(T::ONE);
    three.add(three)
}

fn map_kernel<T: Element>(f: impl Fn(T) -> T + Copy + Send + Sync + 'static) -> Kernel {
    unary(move |ctx, features| map::<T>(ctx, SIMPLE, features, f))
}

fn zip_kernel<T: Element>(setup: &Setup<'_>, f: impl Fn(T, T) -> T + Copy + Send + Sync + 'static) -> Kernel {
    let place = Place::of(setup);
    binary(move |ctx, gradients, features| {
        place.same_shape(&gradients, &features)?;
        zip::<T>(ctx, SIMPLE, gradients, features, f)
    })
}
