//! Local response normalisation and its derivative.

use super::rules::copied;
use graph::{Node, Output};
use math::lrn::Response;
use op::shapes::{merged, unchanged};
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, grads, many, outputs, unary};
use status::{Result, invalid};
use tensor::{Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "LRN(input: T) -> output: T; depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; \
              beta: float = 0.5; T: {half, bfloat16, float} = float",
        shape: unchanged,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "LRNGrad(input_grads: T, input_image: T, output_image: T) -> output: T; depth_radius: int = 5; \
              bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; T: {half, bfloat16, float} = float",
        shape: merged,
        grad: Grad::Unknown,
        kernel: grad_kernel,
        facts: PLAIN,
    },
];

/// `input / (bias + alpha Σ input²)^beta`, the sum over `depth_radius` channels to each side.
pub fn local_response_normalization(input: &Output, depth_radius: i64, bias: f32, alpha: f32, beta: f32) -> Output {
    let builder = input.scope().op("LRN").input(input).attr("depth_radius", depth_radius).attr("bias", bias);
    builder.attr("alpha", alpha).attr("beta", beta).output()
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let builder = dy.scope().op("LRNGrad").input(dy).input(&op.input(0)).input(&op.output(0));
    Ok(grads![copied(builder, op, &["depth_radius", "bias", "alpha", "beta"])?.output()])
}

fn response(setup: &Setup<'_>) -> Result<Response> {
    let radius = setup.int("depth_radius")?;
    let Some(radius) = i32::try_from(radius).ok().and_then(|radius| usize::try_from(radius).ok()) else {
        return Err(invalid!("depth_radius = {radius} larger than int max"));
    };
    Ok(Response { radius, bias: setup.float("bias")?, alpha: setup.float("alpha")?, beta: setup.float("beta")? })
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let response = response(setup)?;
    for_types!(setup, setup.dtype("T")?, [f32, f16, bf16], T => Ok(unary(move |ctx, input| {
        let &[_, _, _, depth] = input.shape().dims() else { return Err(invalid!("in must be 4-dimensional")) };
        let mut out = Tensor::scratch::<T>(input.shape())?;
        math::lrn::normalize::<T>(ctx.pool(), response, depth, input.values()?, out.values_mut()?);
        Ok(out)
    })))
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let response = response(setup)?;
    for_types!(setup, setup.dtype("T")?, [f32, f16, bf16], T => Ok(many(move |ctx, mut inputs| {
        let (grads, image, output) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let &[_, _, _, depth] = grads.shape().dims() else { return Err(invalid!("inputs must be 4-dimensional")) };
        if image.shape().rank() != 4 {
            return Err(invalid!("inputs must be 4-dimensional"));
        }
        if image.shape() != grads.shape() || output.shape() != grads.shape() {
            return Err(invalid!("input_grads, input_image, and out_image should have the same shape"));
        }
        let mut out = Tensor::scratch::<T>(grads.shape())?;
        let (dy, x, y) = (grads.values::<T>()?, image.values()?, output.values()?);
        math::lrn::grad(ctx.pool(), response, depth, dy, x, y, out.values_mut()?);
        Ok(outputs![out])
    })))
}
