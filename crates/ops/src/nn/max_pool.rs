//! Max pooling over images.

use super::geometry::{Layout, Padding};
use super::pool::{Pooling, static_shape, static_shape_v2};
use super::pool_rules;
use super::rules::copied;
use graph::{Node, Output};
use math::pooling::Pooled;
use op::shapes::integers;
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, ShapeQuery, grads, many, outputs, unary};
use status::{Result, invalid, unimplemented_op};
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MaxPool(input: T) -> output: T; \
              T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float; \
              ksize: list(int) >= 4; strides: list(int) >= 4; padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; \
              explicit_paddings: list(int) = []; data_format: {\"NHWC\", \"NCHW\", \"NCHW_VECT_C\"} = \"NHWC\"",
        shape,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "MaxPoolV2(input: T, ksize: int32, strides: int32) -> output: T; \
              T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float; \
              padding: {\"SAME\", \"VALID\"}; data_format: {\"NHWC\", \"NCHW\", \"NCHW_VECT_C\"} = \"NHWC\"",
        shape: static_shape_v2,
        grad: Grad::Rule(rule_v2),
        kernel: kernel_v2,
        facts: PLAIN,
    },
];

/// The largest number of each window; `ksize` and `strides` are those of all four axes.
pub fn max_pool(input: &Output, ksize: [i64; 4], strides: [i64; 4], padding: &str) -> Output {
    let builder = input.scope().op("MaxPool").input(input).attr("ksize", ksize.to_vec());
    builder.attr("strides", strides.to_vec()).attr("padding", padding).output()
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    pool_rules::of_max("MaxPoolGrad", op, dy, &["explicit_paddings"])
}

fn rule_v2(op: &Node, dy: &Output) -> Result<Grads> {
    let [input, ksize, strides] = op.inputs()?;
    let builder = dy.scope().op("MaxPoolGradV2").input(&input).input(&op.output(0)).input(dy);
    let grad = copied(builder.input(&ksize).input(&strides), op, &["padding", "data_format"])?.output();
    Ok(grads![grad, NoGradient, NoGradient])
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    static_shape(query, 2)
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let pooling = Pooling::of(setup, 2)?;
    for_reals!(setup, setup.dtype("T")?, T => Ok(unary(move |ctx, input| run::<T>(ctx, &pooling, input))))
}

fn kernel_v2(setup: &Setup<'_>) -> Result<Kernel> {
    let layout = Layout::of(setup, 2)?;
    let padding = Padding::of(setup, layout)?;
    for_reals!(setup, setup.dtype("T")?, T => Ok(many(move |ctx, mut inputs| {
        let (input, ksize, strides) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let pooling = Pooling::new(layout, padding, &integers(&ksize)?, &integers(&strides)?)?;
        Ok(outputs![run::<T>(ctx, &pooling, input)?])
    })))
}

/// The pooled tensor.
pub(crate) fn run<T: Element + Pooled>(ctx: &Ctx<'_>, pooling: &Pooling, input: Tensor) -> Result<Tensor> {
    let shape = pooling.shape(input.shape())?;
    if pooling.depth > 1 {
        return run_depth::<T>(ctx, pooling, input);
    }
    let input = pooling.channels_last::<T>(ctx, input)?;
    pooling.run::<T>(ctx, &pooling.output(&shape), |out| {
        math::pooling::max(ctx.pool(), &shape, input.values()?, out);
        Ok(())
    })
}

/// The maximum of each group of neighbouring channels.
fn run_depth<T: Element + Pooled>(ctx: &Ctx<'_>, pooling: &Pooling, input: Tensor) -> Result<Tensor> {
    let layout = pooling.geometry.layout;
    let mut images = layout.images(input.shape());
    if !images.channels.is_multiple_of(pooling.depth) {
        return Err(unimplemented_op!(
            "Depthwise max pooling requires the depth window to evenly divide the input depth"
        ));
    }
    if pooling.geometry.strides != [1; 3] {
        return Err(invalid!("Depthwise max pooling requires strides of 1 across width and height"));
    }
    images.channels /= pooling.depth;
    let input = pooling.channels_last::<T>(ctx, input)?;
    let values = input.values::<T>()?;
    pooling.run::<T>(ctx, &layout.shape(images), |out| {
        for (out, values) in out.iter_mut().zip(values.chunks_exact(pooling.depth)) {
            *out = values.iter().fold(T::LOWEST, |best, &x| if best < x { x } else { best });
        }
        Ok(())
    })
}
