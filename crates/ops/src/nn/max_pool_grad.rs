//! The derivatives of max pooling over images.

use super::geometry::{Layout, Padding};
use super::pool::{Pooling, check_shape};
use super::pool_rules;
use super::rules::copied;
use graph::{Node, Output};
use math::pooling::Pooled;
use op::shapes::{integers, unchanged};
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::Result;
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MaxPoolGrad(orig_input: T, orig_output: T, grad: T) -> output: T; ksize: list(int) >= 4; \
              strides: list(int) >= 4; padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; \
              explicit_paddings: list(int) = []; data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; \
              T: realnumbertype = float",
        shape: unchanged,
        grad: Grad::Rule(grad_rule),
        kernel: grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MaxPoolGradV2(orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32) -> output: T; \
              padding: {\"SAME\", \"VALID\"}; data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; \
              T: realnumbertype = float",
        shape: unchanged,
        grad: Grad::Rule(grad_v2_rule),
        kernel: grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MaxPoolGradGrad(orig_input: T, orig_output: T, grad: T) -> output: T; ksize: list(int) >= 4; \
              strides: list(int) >= 4; padding: {\"SAME\", \"VALID\"}; \
              data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; T: realnumbertype",
        shape: as_output,
        grad: Grad::Rule(grad_grad_rule),
        kernel: grad_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MaxPoolGradGradV2(orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32) -> output: T; \
              padding: {\"SAME\", \"VALID\"}; data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; T: realnumbertype",
        shape: as_output,
        grad: Grad::Rule(grad_grad_v2_rule),
        kernel: grad_grad_kernel,
        facts: PLAIN,
    },
];

fn grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    pool_rules::of_max_grad("MaxPoolGradGrad", op, dy)
}

fn grad_grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    pool_rules::of_max_grad("MaxPoolGrad", op, dy)
}

fn grad_v2_rule(op: &Node, dy: &Output) -> Result<Grads> {
    rule_v2("MaxPoolGradGradV2", op, dy)
}

fn grad_grad_v2_rule(op: &Node, dy: &Output) -> Result<Grads> {
    rule_v2("MaxPoolGradV2", op, dy)
}

fn rule_v2(by: &str, op: &Node, dy: &Output) -> Result<Grads> {
    let [input, output, _, ksize, strides] = op.inputs()?;
    let builder = dy.scope().op(by).input(&input).input(&output).input(dy).input(&ksize).input(&strides);
    let grad = copied(builder, op, &["padding", "data_format"])?.output();
    Ok(grads![NoGradient, NoGradient, grad, NoGradient, NoGradient])
}

fn as_output(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[1].clone()])
}

/// The window: known beforehand, or two inputs.
#[derive(Clone, Copy)]
enum Window {
    Known(Pooling),
    Given(Layout, Padding),
}

impl Window {
    fn of(setup: &Setup<'_>) -> Result<Window> {
        if !setup.def().op.ends_with("V2") {
            return Ok(Window::Known(Pooling::of(setup, 2)?));
        }
        let layout = Layout::of(setup, 2)?;
        Ok(Window::Given(layout, Padding::of(setup, layout)?))
    }

    fn pooling(&self, inputs: &mut Inputs) -> Result<Pooling> {
        let pooling = match *self {
            Window::Known(pooling) => pooling,
            Window::Given(layout, padding) => {
                let (ksize, strides) = (integers(&inputs.tensor(3)?)?, integers(&inputs.tensor(4)?)?);
                Pooling::new(layout, padding, &ksize, &strides)?
            }
        };
        pooling.spatial_only("MaxPoolingGrad is not yet supported on the depth dimension.")
    }
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let window = Window::of(setup)?;
    for_reals!(setup, setup.dtype("T")?, T => Ok(many(move |ctx, mut inputs| {
        let pooling = window.pooling(&mut inputs)?;
        let (input, output, grad) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        Ok(outputs![run_grad::<T>(ctx, &pooling, input, output, grad)?])
    })))
}

fn run_grad<T: Element + Pooled>(
    ctx: &Ctx<'_>,
    pooling: &Pooling,
    input: Tensor,
    output: Tensor,
    grad: Tensor,
) -> Result<Tensor> {
    let results = [("orig_output", output.shape()), ("grad", grad.shape())];
    let shape = pooling.backward_shape(input.shape(), &results)?;
    let dims = input.shape().clone();
    let (input, grad) = (pooling.channels_last::<T>(ctx, input)?, pooling.channels_last::<T>(ctx, grad)?);
    pooling.run::<T>(ctx, &dims, |out| {
        math::pooling::max_grad(ctx.pool(), &shape, input.values()?, grad.values()?, out);
        Ok(())
    })
}

fn grad_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let window = Window::of(setup)?;
    for_reals!(setup, setup.dtype("T")?, T => Ok(many(move |ctx, mut inputs| {
        let pooling = window.pooling(&mut inputs)?;
        let (input, output, grad) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        Ok(outputs![run_grad_grad::<T>(ctx, &pooling, input, output, grad)?])
    })))
}

/// The second derivative, of images and volumes alike.
pub(super) fn run_grad_grad<T: Element + Pooled>(
    ctx: &Ctx<'_>,
    pooling: &Pooling,
    input: Tensor,
    output: Tensor,
    grad: Tensor,
) -> Result<Tensor> {
    let shape = pooling.backward_shape(input.shape(), &[("orig_output", output.shape())])?;
    check_shape("grad", input.shape(), grad.shape())?;
    let dims = output.shape().clone();
    let (input, output) = (pooling.channels_last::<T>(ctx, input)?, pooling.channels_last::<T>(ctx, output)?);
    let grad = pooling.channels_last::<T>(ctx, grad)?;
    pooling.run::<T>(ctx, &dims, |out| {
        math::pooling::max_grad_grad(ctx.pool(), &shape, input.values()?, output.values()?, grad.values()?, out);
        Ok(())
    })
}
