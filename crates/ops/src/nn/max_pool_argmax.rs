//! Max pooling that also returns the positions of the maxima, and its derivatives.

use super::pool::{Pooling, check_shape, static_shape};
use super::rules::copied;
use graph::{Node, Output};
use math::pooling::Pooled;
use op::shapes::unchanged;
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MaxPoolWithArgmax(input: T) -> output: T, argmax: Targmax; ksize: list(int) >= 4; \
              strides: list(int) >= 4; Targmax: {int32, int64} = int64; padding: {\"SAME\", \"VALID\"}; \
              include_batch_in_index: bool = false; T: realnumbertype",
        shape: forward_shape,
        grad: Grad::Rules(forward_rule),
        kernel: forward_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MaxPoolGradWithArgmax(input: T, grad: T, argmax: Targmax) -> output: T; ksize: list(int) >= 4; \
              strides: list(int) >= 4; padding: {\"SAME\", \"VALID\"}; include_batch_in_index: bool = false; \
              Targmax: {int32, int64}; T: realnumbertype",
        shape: unchanged,
        grad: Grad::Rule(grad_rule),
        kernel: grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MaxPoolGradGradWithArgmax(input: T, grad: T, argmax: Targmax) -> output: T; ksize: list(int) >= 4; \
              strides: list(int) >= 4; padding: {\"SAME\", \"VALID\"}; include_batch_in_index: bool = false; \
              Targmax: {int32, int64}; T: realnumbertype",
        shape: forward_shape,
        grad: Grad::Unknown,
        kernel: grad_grad_kernel,
        facts: PLAIN,
    },
];

const ATTRS: &[&str] = &["ksize", "strides", "padding", "include_batch_in_index"];

/// The largest number of each window and its place, as two outputs.
pub fn max_pool_with_argmax(input: &Output, ksize: [i64; 4], strides: [i64; 4], padding: &str) -> (Output, Output) {
    let builder = input.scope().op("MaxPoolWithArgmax").input(input).attr("ksize", ksize.to_vec());
    let node = builder.attr("strides", strides.to_vec()).attr("padding", padding).node();
    (node.output(0), node.output(1))
}

fn forward_rule(op: &Node, dy: &[Option<Output>]) -> Result<Grads> {
    let Some(dy) = &dy[0] else { return Ok(grads![NoGradient]) };
    let builder = dy.scope().op("MaxPoolGradWithArgmax").input(&op.input(0)).input(dy).input(&op.output(1));
    Ok(grads![copied(builder, op, ATTRS)?.output()])
}

fn grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [input, _, argmax] = op.inputs()?;
    let builder = dy.scope().op("MaxPoolGradGradWithArgmax").input(&input).input(dy).input(&argmax);
    Ok(grads![NoGradient, copied(builder, op, ATTRS)?.output(), NoGradient])
}

fn forward_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    static_shape(query, 2)
}

fn pooling(setup: &Setup<'_>) -> Result<Pooling> {
    Pooling::of(setup, 2)?.spatial_only("Depthwise max pooling is not supported with argmax")
}

fn forward_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (pooling, include_batch) = (pooling(setup)?, setup.bool("include_batch_in_index")?);
    let narrow = setup.dtype("Targmax")? == DType::I32;
    for_reals!(setup, setup.dtype("T")?, T => Ok(many(move |ctx, mut inputs| {
        run_forward::<T>(ctx, &pooling, include_batch, narrow, inputs.tensor(0)?)
    })))
}

fn run_forward<T: Element + Pooled>(
    ctx: &Ctx<'_>,
    pooling: &Pooling,
    include_batch: bool,
    narrow: bool,
    input: Tensor,
) -> Result<Outputs> {
    if input.shape().rank() != 4 {
        return Err(invalid!("tensor_in must be 4-dimensional (2)"));
    }
    if input.elements() == 0 {
        return Err(invalid!("tensor_in must not be empty (2)"));
    }
    let shape = pooling.shape(input.shape())?;
    let dims = pooling.output(&shape);
    let mut out = Tensor::scratch::<T>(&dims)?;
    let mut argmax = Tensor::scratch::<i64>(&dims)?;
    let (values, places) = (out.values_mut()?, argmax.values_mut()?);
    math::pooling::max_argmax::<T>(ctx.pool(), &shape, input.values()?, include_batch, values, places);
    if narrow {
        let places: Vec<i32> = argmax.values::<i64>()?.iter().map(|&place| place as i32).collect();
        argmax = Tensor::from_slice(&dims, &places)?;
    }
    Ok(outputs![out, argmax])
}

/// Positions as int64.
fn places(argmax: Tensor) -> Result<Tensor> {
    if argmax.dtype() != DType::I32 {
        return Ok(argmax);
    }
    let places: Vec<i64> = argmax.values::<i32>()?.iter().map(|&place| place.into()).collect();
    Tensor::from_slice(argmax.shape(), &places)
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (pooling, include_batch) = (pooling(setup)?, setup.bool("include_batch_in_index")?);
    for_reals!(setup, setup.dtype("T")?, T => Ok(many(move |ctx, mut inputs| {
        let (input, grad, argmax) = (inputs.tensor(0)?, inputs.tensor(1)?, places(inputs.tensor(2)?)?);
        let shape = pooling.shape(input.shape())?;
        check_shape("grad", &pooling.output(&shape), grad.shape())?;
        check_shape("argmax", &pooling.output(&shape), argmax.shape())?;
        let mut out = Tensor::scratch::<T>(input.shape())?;
        let (values, places) = (grad.values::<T>()?, argmax.values()?);
        math::pooling::max_argmax_grad(ctx.pool(), &shape, values, places, include_batch, out.values_mut()?);
        Ok(outputs![out])
    })))
}

fn grad_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (pooling, include_batch) = (pooling(setup)?, setup.bool("include_batch_in_index")?);
    for_reals!(setup, setup.dtype("T")?, T => Ok(many(move |_, mut inputs| {
        let (input, grad, argmax) = (inputs.tensor(0)?, inputs.tensor(1)?, places(inputs.tensor(2)?)?);
        let shape = pooling.shape(input.shape())?;
        check_shape("grad", input.shape(), grad.shape())?;
        check_shape("argmax", &pooling.output(&shape), argmax.shape())?;
        let mut out = Tensor::scratch::<T>(pooling.output(&shape))?;
        let (values, places) = (grad.values::<T>()?, argmax.values()?);
        math::pooling::max_argmax_gather(&shape, values, places, include_batch, out.values_mut()?);
        Ok(outputs![out])
    })))
}
