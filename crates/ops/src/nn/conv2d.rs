//! Convolution over images and its derivatives.

use super::conv::{made_shape, run_forward, run_grad_filter, run_grad_input, static_forward, static_sizes};
use super::conv_rules::ConvRules;
use super::geometry::Geometry;
use graph::{Node, Output};
use math::gemm::Epilogue;
use op::shapes::integers;
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, ShapeQuery, binary, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Conv2D(input: T, filter: T) -> output: T; T: {half, bfloat16, float, double, int32}; \
              strides: list(int); use_cudnn_on_gpu: bool = true; padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; \
              explicit_paddings: list(int) = []; data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; \
              dilations: list(int) = [1, 1, 1, 1]",
        shape: forward_shape,
        grad: Grad::Rule(forward_rule),
        kernel: forward_kernel,
        facts: PLAIN.product("_FusedConv2D", Some("TArgs")),
    },
    Op {
        def: "Conv2DBackpropInput(input_sizes: int32, filter: T, out_backprop: T) -> output: T; \
              T: {half, bfloat16, float, double, int32}; strides: list(int); use_cudnn_on_gpu: bool = true; \
              padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; \
              data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]",
        shape: backprop_input_shape,
        grad: Grad::Rule(backprop_input_rule),
        kernel: backprop_input_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Conv2DBackpropFilter(input: T, filter_sizes: int32, out_backprop: T) -> output: T; \
              T: {half, bfloat16, float, double}; strides: list(int); use_cudnn_on_gpu: bool = true; \
              padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; \
              data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]",
        shape: backprop_filter_shape,
        grad: Grad::Rule(backprop_filter_rule),
        kernel: backprop_filter_kernel,
        facts: PLAIN,
    },
];

const RULES: ConvRules = ConvRules {
    forward: "Conv2D",
    backprop_input: "Conv2DBackpropInput",
    backprop_filter: "Conv2DBackpropFilter",
    attrs: &["strides", "use_cudnn_on_gpu", "padding", "explicit_paddings", "data_format", "dilations"],
};

/// The convolution of `[batch, height, width, channels]` images with a `[height, width, channels, filters]` filter;
/// strides are those of all four axes, padding is `"SAME"` or `"VALID"`.
pub fn conv2d(input: &Output, filter: &Output, strides: [i64; 4], padding: &str) -> Output {
    let strides = strides.to_vec();
    input.scope().op("Conv2D").input(input).input(filter).attr("strides", strides).attr("padding", padding).output()
}

fn forward_rule(op: &Node, dy: &Output) -> Result<Grads> {
    RULES.of_forward(op, dy)
}

fn backprop_input_rule(op: &Node, dy: &Output) -> Result<Grads> {
    RULES.of_backprop_input(op, dy)
}

fn backprop_filter_rule(op: &Node, dy: &Output) -> Result<Grads> {
    RULES.of_backprop_filter(op, dy)
}

fn forward_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    static_forward(query, 2)
}

fn backprop_input_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    // Sizes may be those of the image alone; then batch and channels are taken from the other inputs.
    if query.inputs[0].dim(0) == Some(2) {
        return Ok(vec![PartialShape::of_rank(4)]);
    }
    static_sizes(query, 0, 4)
}

fn backprop_filter_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    static_sizes(query, 1, 4)
}

fn forward_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let geometry = Geometry::of_conv(setup, 2)?;
    for_types!(setup, setup.dtype("T")?, [f32, f64, f16, bf16, i32], T => {
        Ok(binary(move |ctx, input, filter| run_forward::<T>(ctx, &geometry, input, &filter, Epilogue::NONE)).heavy())
    })
}

fn backprop_input_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let geometry = Geometry::of_conv(setup, 2)?;
    for_types!(setup, setup.dtype("T")?, [f32, f64, f16, bf16, i32], T => Ok(many(move |ctx, mut inputs| {
        let (sizes, filter, grad) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let input = input_shape(&geometry, &sizes, filter.shape(), grad.shape())?;
        let label = "Conv2DCustomBackpropInput";
        Ok(outputs![run_grad_input::<T>(ctx, label, &geometry, &input, filter, grad)?])
    })
    .heavy()))
}

fn backprop_filter_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let geometry = Geometry::of_conv(setup, 2)?;
    for_floats!(setup, setup.dtype("T")?, T => Ok(many(move |ctx, mut inputs| {
        let (input, sizes, grad) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        if sizes.shape().rank() != 1 {
            return Err(invalid!(
                "Conv2DBackpropFilter: filter_sizes input must be 1-dim, not {}",
                sizes.shape().rank()
            ));
        }
        let filter = made_shape(&sizes)?;
        let label = "Conv2DCustomBackpropFilter";
        Ok(outputs![run_grad_filter::<T>(ctx, label, &geometry, input, &filter, grad)?])
    })
    .heavy()))
}

/// The shape of the input: four sizes, or those of the image alone.
fn input_shape(geometry: &Geometry, sizes: &Tensor, filter: &Shape, grad: &Shape) -> Result<Shape> {
    if grad.rank() != 4 {
        return Err(invalid!("input_sizes must be 4-dimensional, got: {}", grad.rank()));
    }
    if sizes.shape().rank() != 1 {
        return Err(invalid!("Conv2DBackpropInput: input_sizes input must be 1-dim, not {}", sizes.shape().rank()));
    }
    match *integers(sizes)? {
        [height, width] => {
            if height < 0 || width < 0 {
                return Err(invalid!(
                    "Conv2DBackpropInput: elements of input_sizes must be >= 0, not {height}x{width}"
                ));
            }
            let mut dims = vec![grad[0] as i64, height, width];
            dims.insert(geometry.layout.channel_axis(), filter.get(2).map_or(0, |&depth| depth as i64));
            Shape::checked(&dims)
        }
        [_, _, _, _] => made_shape(sizes),
        _ => Err(invalid!(
            "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but got: {}",
            sizes.elements()
        )),
    }
}
