//! Average pooling over images, and its derivative.

use super::conv::made_shape;
use super::pool::{Pooling, static_shape};
use super::pool_rules;
use graph::{Node, Output};
use math::pooling::Averaged;
use op::shapes::shape_from_input;
use op::{Ctx, Grad, Grads, Kernel, Op, PLAIN, Setup, ShapeQuery, binary, unary};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "AvgPool(value: T) -> output: T; ksize: list(int) >= 4; strides: list(int) >= 4; \
              padding: {\"SAME\", \"VALID\"}; data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; \
              T: {half, bfloat16, float, double}",
        shape: forward_shape,
        grad: Grad::Rule(forward_rule),
        kernel: forward_kernel,
        facts: PLAIN,
    },
    Op {
        def: "AvgPoolGrad(orig_input_shape: int32, grad: T) -> output: T; ksize: list(int) >= 4; \
              strides: list(int) >= 4; padding: {\"SAME\", \"VALID\"}; \
              data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; T: {half, bfloat16, float, double}",
        shape: grad_shape,
        grad: Grad::Rule(grad_rule),
        kernel: grad_kernel,
        facts: PLAIN,
    },
];

/// The mean of each window; `ksize` and `strides` are those of all four axes.
pub fn avg_pool(value: &Output, ksize: [i64; 4], strides: [i64; 4], padding: &str) -> Output {
    let builder = value.scope().op("AvgPool").input(value).attr("ksize", ksize.to_vec());
    builder.attr("strides", strides.to_vec()).attr("padding", padding).output()
}

fn forward_rule(op: &Node, dy: &Output) -> Result<Grads> {
    pool_rules::of_average("AvgPoolGrad", op, dy)
}

fn grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    pool_rules::of_average_grad("AvgPool", op, dy)
}

fn forward_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    static_shape(query, 2)
}

fn grad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![shape_from_input(query, 0)])
}

const SPATIAL: &str = "Non-spatial pooling is not yet supported. Volunteers? :)";

fn forward_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let pooling = Pooling::of(setup, 2)?.spatial_only(SPATIAL)?;
    for_floats!(setup, setup.dtype("T")?, T => Ok(unary(move |ctx, input| run::<T>(ctx, &pooling, input))))
}

/// The pooled tensor, of images and volumes alike.
pub(super) fn run<T: Element + Averaged>(ctx: &Ctx<'_>, pooling: &Pooling, input: Tensor) -> Result<Tensor> {
    let shape = pooling.shape(input.shape())?;
    let input = pooling.channels_last::<T>(ctx, input)?;
    pooling.run::<T>(ctx, &pooling.output(&shape), |out| {
        math::pooling::average(ctx.pool(), &shape, input.values()?, out);
        Ok(())
    })
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let pooling = Pooling::of(setup, 2)?.spatial_only(SPATIAL)?;
    for_floats!(setup, setup.dtype("T")?, T => Ok(binary(move |ctx, sizes, grad| {
        if sizes.shape().dims() != [4] {
            return Err(invalid!("out_backprop must be 1-dimensional and 4 elements"));
        }
        run_grad::<T>(ctx, &pooling, &sizes, grad)
    })))
}

/// The derivative, of images and volumes alike.
pub(super) fn run_grad<T: Element + Averaged>(
    ctx: &Ctx<'_>,
    pooling: &Pooling,
    sizes: &Tensor,
    grad: Tensor,
) -> Result<Tensor> {
    let dims = made_shape(sizes)?;
    let shape = pooling.backward_shape(&dims, &[("grad", grad.shape())])?;
    let grad = pooling.channels_last::<T>(ctx, grad)?;
    pooling.run::<T>(ctx, &dims, |out| {
        math::pooling::average_grad(ctx.pool(), &shape, grad.values()?, out);
        Ok(())
    })
}
