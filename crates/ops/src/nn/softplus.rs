//! Softplus, Softsign and their derivatives.

use super::loops::{Place, map, zip};
use graph::{Node, Output};
use math::elementwise::cost::FUNCTION;
use math::function::{Number, Ordered, Real};
use math::fused::Unary;
use op::shapes::{merged, unchanged};
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, binary, grads, unary};
use status::Result;
use tensor::Element;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Softplus(features: T) -> activations: T; T: {half, bfloat16, float, double}",
        shape: unchanged,
        grad: Grad::Rule(softplus_rule),
        kernel: softplus_kernel,
        facts: PLAIN.unary(Unary::Softplus),
    },
    Op {
        def: "SoftplusGrad(gradients: T, features: T) -> backprops: T; T: {half, bfloat16, float, double}",
        shape: merged,
        grad: Grad::Rule(softplus_grad_rule),
        kernel: softplus_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Softsign(features: T) -> activations: T; T: {half, bfloat16, float, double}",
        shape: unchanged,
        grad: Grad::Rule(softsign_rule),
        kernel: softsign_kernel,
        facts: PLAIN.unary(Unary::Softsign),
    },
    Op {
        def: "SoftsignGrad(gradients: T, features: T) -> backprops: T; T: {half, bfloat16, float, double}",
        shape: merged,
        grad: Grad::Unknown,
        kernel: softsign_grad_kernel,
        facts: PLAIN,
    },
];

/// `log(exp(features) + 1)`, element by element.
pub fn softplus(features: &Output) -> Output {
    features.scope().op("Softplus").input(features).output()
}

/// `gradients / (exp(-features) + 1)`.
pub fn softplus_grad(gradients: &Output, features: &Output) -> Output {
    features.scope().op("SoftplusGrad").input(gradients).input(features).output()
}

/// `features / (|features| + 1)`, element by element.
pub fn softsign(features: &Output) -> Output {
    features.scope().op("Softsign").input(features).output()
}

/// `gradients / (|features| + 1)²`.
pub fn softsign_grad(gradients: &Output, features: &Output) -> Output {
    features.scope().op("SoftsignGrad").input(gradients).input(features).output()
}

fn softplus_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![softplus_grad(dy, &op.input(0))])
}

/// The second derivative of softplus is `1 / (exp(-x) + 2 + exp(x))`.
fn softplus_grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [gradients, x] = op.inputs()?;
    let exp = |x: &Output| x.scope().op("Exp").input(x).output();
    let second = dy * gradients / (exp(&-&x) + 2.0 + exp(&x));
    Ok(grads![softplus_grad(dy, &x), second])
}

fn softsign_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![softsign_grad(dy, &op.input(0))])
}

fn softplus_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("T")?, T => Ok(unary(|ctx, x| map::<T>(ctx, FUNCTION, x, Real::softplus))))
}

fn softsign_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("T")?, T => Ok(unary(|ctx, x| map::<T>(ctx, FUNCTION, x, Real::softsign))))
}

fn softplus_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("T")?, T => {
        Ok(zip_kernel::<T>(setup, |dy: T, x: T| dy.div(Real::exp(x.neg()).add(T::ONE))))
    })
}

fn softsign_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_floats!(setup, setup.dtype("T")?, T => {
        Ok(zip_kernel::<T>(setup, |dy: T, x: T| dy.div(x.absolute().add(T::ONE).square())))
    })
}

fn zip_kernel<T: Element>(setup: &Setup<'_>, f: impl Fn(T, T) -> T + Copy + Send + Sync + 'static) -> Kernel {
    let place = Place::of(setup);
    binary(move |ctx, gradients, features| {
        place.same_shape(&gradients, &features)?;
        zip::<T>(ctx, FUNCTION, gradients, features, f)
    })
}
