//! Max and average pooling over volumes, and their derivatives.

use super::pool::{Pooling, static_shape};
use super::{avg_pool, max_pool, max_pool_grad, pool_rules};
use graph::{Node, Output};
use math::function::Real;
use math::pooling::Pooled;
use op::shapes::{shape_from_input, unchanged};
use op::{Ctx, Grad, Grads, Kernel, Op, PLAIN, Setup, ShapeQuery, binary, many, outputs, unary};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MaxPool3D(input: T) -> output: T; ksize: list(int) >= 5; strides: list(int) >= 5; \
              padding: {\"SAME\", \"VALID\"}; data_format: {\"NDHWC\", \"NCDHW\"} = \"NDHWC\"; \
              T: {half, bfloat16, float}",
        shape: forward_shape,
        grad: Grad::Rule(max_rule),
        kernel: max_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MaxPool3DGrad(orig_input: TInput, orig_output: TInput, grad: T) -> output: T; ksize: list(int) >= 5; \
              strides: list(int) >= 5; padding: {\"SAME\", \"VALID\"}; \
              data_format: {\"NDHWC\", \"NCDHW\"} = \"NDHWC\"; T: {half, bfloat16, float} = float; \
              TInput: {half, bfloat16, float} = float",
        shape: unchanged,
        grad: Grad::Rule(max_grad_rule),
        kernel: max_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MaxPool3DGradGrad(orig_input: T, orig_output: T, grad: T) -> output: T; ksize: list(int) >= 5; \
              strides: list(int) >= 5; padding: {\"SAME\", \"VALID\"}; \
              data_format: {\"NDHWC\", \"NCDHW\"} = \"NDHWC\"; T: realnumbertype",
        shape: as_output,
        grad: Grad::Rule(max_grad_grad_rule),
        kernel: max_grad_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "AvgPool3D(input: T) -> output: T; ksize: list(int) >= 5; strides: list(int) >= 5; \
              padding: {\"SAME\", \"VALID\"}; data_format: {\"NDHWC\", \"NCDHW\"} = \"NDHWC\"; \
              T: {half, bfloat16, float, double}",
        shape: forward_shape,
        grad: Grad::Rule(avg_rule),
        kernel: avg_kernel,
        facts: PLAIN,
    },
    Op {
        def: "AvgPool3DGrad(orig_input_shape: int32, grad: T) -> output: T; ksize: list(int) >= 5; \
              strides: list(int) >= 5; padding: {\"SAME\", \"VALID\"}; \
              data_format: {\"NDHWC\", \"NCDHW\"} = \"NDHWC\"; T: {half, bfloat16, float, double}",
        shape: avg_grad_shape,
        grad: Grad::Rule(avg_grad_rule),
        kernel: avg_grad_kernel,
        facts: PLAIN,
    },
];

/// The largest number of each window of a volume; `ksize` and `strides` are those of all five axes.
pub fn max_pool3d(input: &Output, ksize: [i64; 5], strides: [i64; 5], padding: &str) -> Output {
    let builder = input.scope().op("MaxPool3D").input(input).attr("ksize", ksize.to_vec());
    builder.attr("strides", strides.to_vec()).attr("padding", padding).output()
}

/// The mean of each window of a volume; `ksize` and `strides` are those of all five axes.
pub fn avg_pool3d(input: &Output, ksize: [i64; 5], strides: [i64; 5], padding: &str) -> Output {
    let builder = input.scope().op("AvgPool3D").input(input).attr("ksize", ksize.to_vec());
    builder.attr("strides", strides.to_vec()).attr("padding", padding).output()
}

fn max_rule(op: &Node, dy: &Output) -> Result<Grads> {
    pool_rules::of_max("MaxPool3DGrad", op, dy, &[])
}

fn max_grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    pool_rules::of_max_grad("MaxPool3DGradGrad", op, dy)
}

fn max_grad_grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    pool_rules::of_max_grad("MaxPool3DGrad", op, dy)
}

fn avg_rule(op: &Node, dy: &Output) -> Result<Grads> {
    pool_rules::of_average("AvgPool3DGrad", op, dy)
}

fn avg_grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    pool_rules::of_average_grad("AvgPool3D", op, dy)
}

fn forward_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    static_shape(query, 3)
}

fn as_output(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[1].clone()])
}

fn avg_grad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![shape_from_input(query, 0)])
}

fn max_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let pooling = Pooling::of(setup, 3)?;
    for_floats!(setup, setup.dtype("T")?, T => Ok(unary(move |ctx, input| max_pool::run::<T>(ctx, &pooling, input))))
}

fn avg_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let pooling = Pooling::of(setup, 3)?;
    for_floats!(setup, setup.dtype("T")?, T => Ok(unary(move |ctx, input| avg_pool::run::<T>(ctx, &pooling, input))))
}

fn avg_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let pooling = Pooling::of(setup, 3)?;
    for_floats!(setup, setup.dtype("T")?, T => Ok(binary(move |ctx, sizes, grad| {
        if sizes.shape().dims() != [5] {
            return Err(invalid!("tensor_in must be 1-dimensional and 5 elements"));
        }
        avg_pool::run_grad::<T>(ctx, &pooling, &sizes, grad)
    })))
}

fn max_grad_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let pooling = Pooling::of(setup, 3)?;
    for_floats!(setup, setup.dtype("T")?, T => Ok(many(move |ctx, mut inputs| {
        let (input, output, grad) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        Ok(outputs![max_pool_grad::run_grad_grad::<T>(ctx, &pooling, input, output, grad)?])
    })))
}

fn max_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let pooling = Pooling::of(setup, 3)?;
    let dtype = setup.dtype("T")?;
    if setup.dtype("TInput")? != dtype {
        return Err(setup.no_kernel());
    }
    for_floats!(setup, dtype, T => Ok(many(move |ctx, mut inputs| {
        let (input, output, grad) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        Ok(outputs![run_max_grad::<T>(ctx, &pooling, input, output, grad)?])
    })))
}

/// Unlike in images, every number that is about as large as the largest takes the gradient: as TensorFlow has it.
fn run_max_grad<T: Element + Pooled + Real>(
    ctx: &Ctx<'_>,
    pooling: &Pooling,
    input: Tensor,
    output: Tensor,
    grad: Tensor,
) -> Result<Tensor> {
    let results = [("orig_output", output.shape()), ("grad", grad.shape())];
    let shape = pooling.backward_shape(input.shape(), &results)?;
    let dims = input.shape().clone();
    let (input, output) = (pooling.channels_last::<T>(ctx, input)?, pooling.channels_last::<T>(ctx, output)?);
    let grad = pooling.channels_last::<T>(ctx, grad)?;
    pooling.run::<T>(ctx, &dims, |out| {
        let near = |x: T, max: T| (x.to_f64() - max.to_f64()).abs() < 1e-5;
        let (values, maxima, grads) = (input.values()?, output.values()?, grad.values()?);
        math::pool_ties::max_grad(ctx.pool(), &shape, values, maxima, grads, near, out);
        Ok(())
    })
}
