//! Elu, Selu and their derivatives.

use super::loops::{Place, map, zip};
use graph::{Node, Output};
use math::elementwise::cost::{FUNCTION, SIMPLE};
use math::function::{Number, Real};
use math::fused::Unary;
use op::shapes::{merged, unchanged};
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, binary, grads, unary};
use status::Result;
use tensor::Element;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Elu(features: T) -> activations: T; T: {half, bfloat16, float, double}",
        shape: unchanged,
        grad: Grad::Rule(elu_rule),
        kernel: elu_kernel,
        facts: PLAIN.unary(Unary::Elu).activation(),
    },
    Op {
        def: "EluGrad(gradients: T, outputs: T) -> backprops: T; T: {half, bfloat16, float, double}",
        shape: merged,
        grad: Grad::Rule(elu_grad_rule),
        kernel: elu_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Selu(features: T) -> activations: T; T: {half, bfloat16, float, double}",
        shape: unchanged,
        grad: Grad::Rule(selu_rule),
        kernel: selu_kernel,
        facts: PLAIN.unary(Unary::Selu),
    },
    Op {
        def: "SeluGrad(gradients: T, outputs: T) -> backprops: T; T: {half, bfloat16, float, double}",
        shape: merged,
        grad: Grad::Rule(selu_grad_rule),
        kernel: selu_grad_kernel,
        facts: PLAIN,
    },
];

/// `features` where they are positive, `exp(features) - 1` elsewhere.
pub fn elu(features: &Output) -> Output {
    features.scope().op("Elu").input(features).output()
}

/// The derivative of `elu`, by its outputs.
pub fn elu_grad(gradients: &Output, outputs: &Output) -> Output {
    outputs.scope().op("EluGrad").input(gradients).input(outputs).output()
}

/// The scaled `elu`, which preserves mean 0 and variance 1 of activations.
pub fn selu(features: &Output) -> Output {
    features.scope().op("Selu").input(features).output()
}

/// The derivative of `selu`, by its outputs.
pub fn selu_grad(gradients: &Output, outputs: &Output) -> Output {
    outputs.scope().op("SeluGrad").input(gradients).input(outputs).output()
}

fn elu_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![elu_grad(dy, &op.output(0))])
}

fn elu_grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![elu_grad(dy, &op.input(1)), where_negative(&op.input(1), &(dy * op.input(0)))])
}

fn selu_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![selu_grad(dy, &op.output(0))])
}

fn selu_grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![selu_grad(dy, &op.input(1)), where_negative(&op.input(1), &(dy * op.input(0)))])
}

/// `values` where `x` is below zero, zero elsewhere.
fn where_negative(x: &Output, values: &Output) -> Output {
    let scope = x.scope();
    let negative = scope.op("Less").input(x).input(&x.like(0.0)).output();
    let zeros = scope.op("ZerosLike").input(values).output();
    scope.op("SelectV2").input(&negative).input(values).input(&zeros).output()
}

fn elu_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("T")?, T => Ok(unary(|ctx, x| map::<T>(ctx, FUNCTION, x, Real::elu))))
}

fn selu_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("T")?, T => Ok(unary(|ctx, x| map::<T>(ctx, FUNCTION, x, Real::selu))))
}

fn elu_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("T")?, T => {
        Ok(zip_kernel::<T>(setup, |dy: T, y: T| if y < T::ZERO { y.add(T::ONE).mul(dy) } else { dy }))
    })
}

fn selu_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    const SCALE: f64 = 1.050_700_987_355_480_5;
    const SCALE_ALPHA: f64 = 1.758_099_340_847_376_6;
    for_floats!(setup, setup.dtype("T")?, T => {
        let (scale, scale_alpha) = (T::from_f64(SCALE), T::from_f64(SCALE_ALPHA));
        Ok(zip_kernel::<T>(setup, move |dy: T, y: T| {
            dy.mul(if y < T::ZERO { y.add(scale_alpha) } else { scale })
        }))
    })
}

fn zip_kernel<T: Element>(setup: &Setup<'_>, f: impl Fn(T, T) -> T + Copy + Send + Sync + 'static) -> Kernel {
    let place = Place::of(setup);
    binary(move |ctx, gradients, outputs| {
        place.same_shape(&gradients, &outputs)?;
        zip::<T>(ctx, SIMPLE, gradients, outputs, f)
    })
}
