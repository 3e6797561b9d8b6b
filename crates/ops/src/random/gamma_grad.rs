//! The derivatives of samples of a gamma distribution by its parameter.

use super::binomial::{broadcast_shape, places};
use super::sampler::{Sampled, doubles};
use graph::{Node, Output};
use math::elementwise::Broadcast;
use math::function::Real;
use math::parallel::split_mut;
use op::shapes::broadcast;
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads};
use status::{Result, invalid};
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "RandomGammaGrad(alpha: T, sample: T) -> output: T; T: {float, double}",
    shape: broadcast,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// The derivative of samples by the parameter they were drawn with, at a constant quantile.
pub fn random_gamma_grad(alpha: &Output, sample: &Output) -> Output {
    alpha.scope().op("RandomGammaGrad").input(alpha).input(sample).output()
}

/// The gradient of a node whose input `alpha` is the parameter: samples are outermost, so they are summed over the
/// leading dimensions.
fn gradient(op: &Node, alpha: usize, dy: &Output) -> Output {
    let scope = dy.scope();
    let (alpha, sample) = (op.input(alpha).seen_from(scope), op.output(0).seen_from(scope));
    let rank = |tensor: &Output| scope.op("Rank").input(tensor).output();
    let int = |value: i32| scope.op("Const").attr("value", Tensor::scalar(value)).attr("dtype", DType::I32).output();
    let leading = rank(&sample) - rank(&alpha);
    let axes = scope.op("Range").input(&int(0)).input(&leading).input(&int(1)).output();
    scope.op("Sum").input(&(dy * random_gamma_grad(&alpha, &sample))).input(&axes).output()
}

/// The rule of ops whose second input is the parameter.
pub(crate) fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![NoGradient, gradient(op, 1, dy)])
}

/// For ops that have a seed between shape and parameter.
pub(crate) fn stateless_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![NoGradient, NoGradient, gradient(op, 2, dy)])
}

/// For ops that have key, counter and algorithm between shape and parameter.
pub(crate) fn keyed_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![NoGradient, NoGradient, NoGradient, NoGradient, gradient(op, 4, dy)])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [f32, f64], T => {
        Ok(binary(|ctx, alpha, sample| slopes::<T>(ctx, &alpha, &sample)).heavy())
    })
}

fn slopes<T: Sampled>(ctx: &Ctx<'_>, alpha: &Tensor, sample: &Tensor) -> Result<Tensor> {
    if Broadcast::new(alpha.shape(), sample.shape()).is_none() {
        return Err(invalid!("Incompatible shapes: {} vs. {}", alpha.shape(), sample.shape()));
    }
    let rank = alpha.shape().rank().max(sample.shape().rank());
    let whole = broadcast_shape(alpha.shape(), sample.shape(), rank);
    let at: Vec<(usize, usize)> = places(alpha.shape(), &whole).zip(places(sample.shape(), &whole)).collect();
    let (alphas, samples) = (doubles(alpha)?, doubles(sample)?);
    let mut out = Tensor::scratch::<T>(whole)?;
    split_mut(ctx.pool(), 300.0, out.values_mut::<T>()?, |first, chunk| {
        for (out, &(alpha, sample)) in chunk.iter_mut().zip(&at[first..]) {
            *out = T::of(slope(alphas[alpha], samples[sample]));
        }
    });
    Ok(out)
}

/// With P the distribution function, P(alpha, x) is constant: dx/dalpha = -(dP/dalpha) / (dP/dx).
fn slope(alpha: f64, x: f64) -> f64 {
    let density = ((alpha - 1.0) * x.ln() - x - Real::lgamma(alpha)).exp();
    -Real::igamma_grad_a(alpha, x) / density
}
