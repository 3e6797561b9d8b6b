//! BiasAdd, which adds one number for each channel, and its gradient, the sum over all other axes.

use super::rules::apply;
use graph::{AttrValue, Node, Output};
use math::elementwise::cost::SIMPLE;
use math::function::Number;
use math::reduce::{Accumulate, Reduction, Sum, reduce_axes};
use op::shapes::unchanged;
use op::{Ctx, Grad, Grads, Kernel, Op, PLAIN, Setup, ShapeQuery, binary, grads, unary};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "BiasAdd(value: T, bias: T) -> output: T; T: numbertype; data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"",
        shape: add_shape,
        grad: Grad::Rule(add_rule),
        kernel: add_kernel,
        facts: PLAIN.bias(),
    },
    Op {
        def: "BiasAddV1(value: T, bias: T) -> output: T; T: numbertype",
        shape: add_shape,
        grad: Grad::Rule(add_v1_rule),
        kernel: add_kernel,
        facts: PLAIN,
    },
    Op {
        def: "BiasAddGrad(out_backprop: T) -> output: T; T: numbertype; \
              data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"",
        shape: grad_shape,
        grad: Grad::Rule(grad_rule),
        kernel: grad_kernel,
        facts: PLAIN,
    },
];

/// `value` with `bias` added along the last axis.
pub fn bias_add(value: &Output, bias: &Output) -> Output {
    bias_add_as(value, bias, "NHWC")
}

/// `value` with `bias` added along the axis of channels in this data format.
pub fn bias_add_as(value: &Output, bias: &Output, data_format: impl Into<AttrValue>) -> Output {
    value.scope().op("BiasAdd").input(value).input(bias).attr("data_format", data_format).output()
}

/// The sum of `gradients` over all axes but that of channels.
pub fn bias_add_grad(gradients: &Output, data_format: impl Into<AttrValue>) -> Output {
    gradients.scope().op("BiasAddGrad").input(gradients).attr("data_format", data_format).output()
}

fn add_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![dy.clone(), bias_add_grad(dy, op.attr("data_format")?)])
}

fn add_v1_rule(_: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![dy.clone(), bias_add_grad(dy, "NHWC")])
}

/// The gradient of a sum is repeated: it is added to zeros of the full shape.
fn grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![bias_add_as(&apply("ZerosLike", &op.input(0)), dy, op.attr("data_format")?)])
}

fn add_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (value, bias) = (&query.inputs[0], query.inputs[1].merge(&PartialShape::of_rank(1))?);
    let Some(rank) = value.rank() else { return unchanged(query) };
    if rank < 2 {
        return Err(invalid!("Shape must be at least rank 2 but is rank {rank}"));
    }
    let axis = channel_axis(query_is_nchw(query), rank);
    let mut dims = vec![-1; rank];
    dims[axis] = bias.dims().map_or(-1, |dims| dims[0]);
    Ok(vec![value.merge(&PartialShape::new(&dims))?])
}

fn grad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::of_rank(1)]) };
    if dims.len() < 2 {
        return Err(invalid!("Shape must be at least rank 2 but is rank {}", dims.len()));
    }
    Ok(vec![PartialShape::new(&[dims[channel_axis(query_is_nchw(query), dims.len())]])])
}

fn query_is_nchw(query: &ShapeQuery<'_>) -> bool {
    matches!(query.attr("data_format"), Ok(AttrValue::String(format)) if format == "NCHW")
}

fn channel_axis(nchw: bool, rank: usize) -> usize {
    if nchw { 1 } else { rank - 1 }
}

fn is_nchw(setup: &Setup<'_>) -> bool {
    setup.string("data_format").is_ok_and(|format| format == "NCHW")
}

fn add_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let nchw = is_nchw(setup);
    for_numbers!(setup, setup.dtype("T")?, T => {
        Ok(binary(move |ctx, value, bias| run_add::<T>(ctx, value, bias, nchw)))
    })
}

fn run_add<T: Element + Number>(ctx: &Ctx<'_>, mut value: Tensor, bias: Tensor, nchw: bool) -> Result<Tensor> {
    let [_, channels, inner] = split_at_channels(value.shape(), nchw)?;
    let &[biases] = bias.shape().dims() else {
        return Err(invalid!("Biases must be 1D: {}", bias.shape()));
    };
    if biases != channels {
        return Err(invalid!(
            "Must provide as many biases as the last dimension of the input tensor: {} vs. {}",
            bias.shape(),
            value.shape()
        ));
    }
    let bias = bias.values::<T>()?;
    if value.is_unique() {
        math::bias::add_in_place(ctx.pool(), inner, bias, value.values_mut()?);
        return Ok(value);
    }
    let mut out = Tensor::scratch::<T>(value.shape())?;
    math::bias::add(ctx.pool(), inner, value.values()?, bias, out.values_mut()?);
    Ok(out)
}

/// The numbers of elements before, along and after the axis of channels.
fn split_at_channels(shape: &Shape, nchw: bool) -> Result<[usize; 3]> {
    if shape.rank() < 2 {
        return Err(invalid!("Input tensor must be at least 2D: {shape}"));
    }
    let axis = channel_axis(nchw, shape.rank());
    Ok([shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product()])
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let nchw = is_nchw(setup);
    for_numbers!(setup, setup.dtype("T")?, T => {
        Ok(unary(move |ctx, gradients| run_grad::<T>(ctx, gradients, nchw)))
    })
}

fn run_grad<T: Element + Accumulate>(ctx: &Ctx<'_>, gradients: Tensor, nchw: bool) -> Result<Tensor> {
    let [outer, channels, inner] = split_at_channels(gradients.shape(), nchw)?;
    let mut sums = Tensor::scratch::<T>([channels])?;
    let shape = Reduction::new(&[outer, channels, inner], &[true, false, true]);
    reduce_axes(ctx.pool(), SIMPLE, &shape, gradients.values::<T>()?, sums.values_mut()?, Sum);
    Ok(sums)
}
