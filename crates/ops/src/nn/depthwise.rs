//! Depthwise convolution over images, with separate filters for each channel, and its derivatives.

use super::conv::{made_shape, static_sizes, window};
use super::conv_rules::ConvRules;
use super::convolved::Depthwise;
use super::geometry::{Geometry, Images, Layout};
use graph::{Node, Output};
use math::conv::ConvShape;
use op::{Ctx, Grad, Grads, Kernel, Op, PLAIN, Setup, ShapeQuery, binary, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "DepthwiseConv2dNative(input: T, filter: T) -> output: T; T: {half, bfloat16, float, double}; \
              strides: list(int); padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; \
              data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]",
        shape: forward_shape,
        grad: Grad::Rule(forward_rule),
        kernel: forward_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DepthwiseConv2dNativeBackpropInput(input_sizes: int32, filter: T, out_backprop: T) -> output: T; \
              T: {half, bfloat16, float, double}; strides: list(int); \
              padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; \
              data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]",
        shape: backprop_input_shape,
        grad: Grad::Rule(backprop_input_rule),
        kernel: backprop_input_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DepthwiseConv2dNativeBackpropFilter(input: T, filter_sizes: int32, out_backprop: T) -> output: T; \
              T: {half, bfloat16, float, double}; strides: list(int); \
              padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; \
              data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]",
        shape: backprop_filter_shape,
        grad: Grad::Rule(backprop_filter_rule),
        kernel: backprop_filter_kernel,
        facts: PLAIN,
    },
];

const RULES: ConvRules = ConvRules {
    forward: "DepthwiseConv2dNative",
    backprop_input: "DepthwiseConv2dNativeBackpropInput",
    backprop_filter: "DepthwiseConv2dNativeBackpropFilter",
    attrs: &["strides", "padding", "explicit_paddings", "data_format", "dilations"],
};

/// The convolution of `[batch, height, width, channels]` images with a `[height, width, channels, multiplier]` filter;
/// channel `c` of the input produces channels `c * multiplier ..` of the result.
pub fn depthwise_conv2d(input: &Output, filter: &Output, strides: [i64; 4], padding: &str) -> Output {
    let builder = input.scope().op("DepthwiseConv2dNative").input(input).input(filter);
    builder.attr("strides", strides.to_vec()).attr("padding", padding).output()
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
    let geometry = Geometry::of_conv(query, 2)?;
    let input = query.inputs[0].merge(&PartialShape::of_rank(4))?;
    let filter = query.inputs[1].merge(&PartialShape::of_rank(4))?;
    let (Some(input), Some(filter)) = (input.dims(), filter.dims()) else { return op::shapes::unknown(query) };
    let layout = geometry.layout;
    let channels = PartialShape::new(&[input[layout.channel_axis()]]).merge(&PartialShape::new(&filter[2..3]))?;
    let channels = channels.dim(0).map_or(-1, |size| size as i64);
    let first = layout.first_axis();
    let mut dims = vec![
        input[0],
        geometry.static_output(1, input[first], filter[0])?,
        geometry.static_output(2, input[first + 1], filter[1])?,
    ];
    let out = if channels < 0 || filter[3] < 0 { -1 } else { channels.saturating_mul(filter[3]) };
    dims.insert(layout.channel_axis(), out);
    Ok(vec![PartialShape::new(&dims)])
}

fn backprop_input_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    static_sizes(query, 0, 4)
}

fn backprop_filter_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    static_sizes(query, 1, 4)
}

fn forward_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let geometry = Geometry::of_conv(setup, 2)?;
    for_floats!(setup, setup.dtype("T")?, T => {
        Ok(binary(move |ctx, input, filter| run_forward::<T>(ctx, &geometry, input, filter)).heavy())
    })
}

fn run_forward<T: Depthwise>(ctx: &Ctx<'_>, geometry: &Geometry, input: Tensor, filter: Tensor) -> Result<Tensor> {
    let shape = checked_shape(geometry, input.shape(), filter.shape())?;
    let mut out = Tensor::scratch::<T>(channels_last(geometry.layout).shape(output_images(&shape)))?;
    let input = geometry.layout.to_channels_last::<T>(ctx, input)?;
    T::forward(ctx.pool(), &shape, input.values()?, filter.values()?, out.values_mut()?);
    geometry.layout.from_channels_last::<T>(ctx, out)
}

fn checked_shape(geometry: &Geometry, input: &Shape, filter: &Shape) -> Result<ConvShape> {
    if input.rank() != 4 {
        return Err(invalid!("input must be 4-dimensional{input}"));
    }
    if filter.rank() != 4 {
        return Err(invalid!("filter must be 4-dimensional: {filter}"));
    }
    let images = geometry.layout.images(input);
    if images.channels != filter[2] {
        return Err(invalid!("input and filter must have the same depth: {} vs {}", images.channels, filter[2]));
    }
    depthwise_shape(geometry, images, filter)
}

fn depthwise_shape(geometry: &Geometry, images: Images, filter: &Shape) -> Result<ConvShape> {
    let window = window(filter);
    if window.contains(&0) || images.channels == 0 {
        return Err(invalid!("filter must not have zero elements (i.e. all dimensions must be non-zero)"));
    }
    let axes = geometry.axes(images.size, window)?;
    let out_channels = images.channels.checked_mul(filter[3]);
    out_channels
        .and_then(|out_channels| ConvShape::new(images.batch, axes, images.channels, 1, out_channels))
        .ok_or_else(|| invalid!("Tensor too large"))
}

fn channels_last(layout: Layout) -> Layout {
    Layout { channels_first: false, ..layout }
}

fn output_images(shape: &ConvShape) -> Images {
    Images { batch: shape.batch, size: shape.output, channels: shape.out_channels }
}

fn backprop_input_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let geometry = Geometry::of_conv(setup, 2)?;
    for_floats!(setup, setup.dtype("T")?, T => Ok(many(move |ctx, mut inputs| {
        let (sizes, filter, grad) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let input = wanted_shape("DepthwiseConv2dNativeBackpropInput: input_sizes", &sizes)?;
        Ok(outputs![run_backprop_input::<T>(ctx, &geometry, &input, filter, grad)?])
    })
    .heavy()))
}

fn backprop_filter_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let geometry = Geometry::of_conv(setup, 2)?;
    for_floats!(setup, setup.dtype("T")?, T => Ok(many(move |ctx, mut inputs| {
        let (input, sizes, grad) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let filter = wanted_shape("DepthwiseConv2dNativeBackpropFilter: filter_sizes", &sizes)?;
        Ok(outputs![run_backprop_filter::<T>(ctx, &geometry, input, &filter, grad)?])
    })
    .heavy()))
}

fn run_backprop_input<T: Depthwise>(
    ctx: &Ctx<'_>,
    geometry: &Geometry,
    input: &Shape,
    filter: Tensor,
    grad: Tensor,
) -> Result<Tensor> {
    let label = "DepthwiseConv2DBackpropInput";
    let shape = backward_shape(label, geometry, input, filter.shape(), grad.shape())?;
    let mut out = Tensor::scratch::<T>(channels_last(geometry.layout).shape(geometry.layout.images(input)))?;
    let grad = geometry.layout.to_channels_last::<T>(ctx, grad)?;
    T::grad_input(ctx.pool(), &shape, filter.values()?, grad.values()?, out.values_mut()?);
    geometry.layout.from_channels_last::<T>(ctx, out)
}

fn run_backprop_filter<T: Depthwise>(
    ctx: &Ctx<'_>,
    geometry: &Geometry,
    input: Tensor,
    filter: &Shape,
    grad: Tensor,
) -> Result<Tensor> {
    let label = "DepthwiseConv2DBackpropFilter";
    let shape = backward_shape(label, geometry, input.shape(), filter, grad.shape())?;
    let mut out = Tensor::scratch::<T>(filter)?;
    let input = geometry.layout.to_channels_last::<T>(ctx, input)?;
    let grad = geometry.layout.to_channels_last::<T>(ctx, grad)?;
    T::grad_filter(ctx.pool(), &shape, input.values()?, grad.values()?, out.values_mut()?);
    Ok(out)
}

fn wanted_shape(what: &str, sizes: &Tensor) -> Result<Shape> {
    if sizes.shape().rank() != 1 {
        return Err(invalid!("{what} input must be 1-dim, not {}", sizes.shape().rank()));
    }
    made_shape(sizes)
}

fn backward_shape(label: &str, geometry: &Geometry, input: &Shape, filter: &Shape, grad: &Shape) -> Result<ConvShape> {
    for (name, shape) in [("input", input), ("filter", filter), ("out_backprop", grad)] {
        if shape.rank() != 4 {
            return Err(invalid!("{label}: {name} must be 4-dimensional"));
        }
    }
    let (images, grads) = (geometry.layout.images(input), geometry.layout.images(grad));
    if images.batch != grads.batch {
        return Err(invalid!("{label}: input and out_backprop must have the same batch size"));
    }
    if images.channels != filter[2] {
        return Err(invalid!("{label}: input and filter must have the same in_depth"));
    }
    let shape = depthwise_shape(geometry, images, filter)?;
    if grads.channels != shape.out_channels {
        return Err(invalid!("{label}: depth_multiplier * in_depth not equal to out_depth"));
    }
    if shape.output != grads.size {
        return Err(invalid!(
            "{label}: out_backprop has height and width {}x{}, but {}x{} were expected",
            grads.size[1],
            grads.size[2],
            shape.output[1],
            shape.output[2]
        ));
    }
    Ok(shape)
}
