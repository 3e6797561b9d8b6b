//! Convolution over volumes and its derivatives.

use super::conv::{made_shape, run_forward, run_grad_filter, run_grad_input, static_forward, static_sizes};
use super::conv_rules::ConvRules;
use super::geometry::Geometry;
use graph::{Node, Output};
use math::gemm::Epilogue;
use op::shapes::unchanged;
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, ShapeQuery, binary, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Conv3D(input: T, filter: T) -> output: T; T: {half, bfloat16, float, double}; \
              strides: list(int) >= 5; padding: {\"SAME\", \"VALID\"}; \
              data_format: {\"NDHWC\", \"NCDHW\"} = \"NDHWC\"; dilations: list(int) = [1, 1, 1, 1, 1]",
        shape: forward_shape,
        grad: Grad::Rule(forward_rule),
        kernel: forward_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Conv3DBackpropInput(input: T, filter: T, out_backprop: T) -> output: T; T: {half, float, double}; \
              strides: list(int) >= 5; padding: {\"SAME\", \"VALID\"}; dilations: list(int) = [1, 1, 1, 1, 1]",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: backprop_input_kernel,
        facts: PLAIN.removed_in(10, "Use Conv3DBackpropInputV2"),
    },
    Op {
        def: "Conv3DBackpropFilter(input: T, filter: T, out_backprop: T) -> output: T; T: {half, float, double}; \
              strides: list(int) >= 5; padding: {\"SAME\", \"VALID\"}; dilations: list(int) = [1, 1, 1, 1, 1]",
        shape: as_second,
        grad: Grad::Unknown,
        kernel: backprop_filter_kernel,
        facts: PLAIN.removed_in(10, "Use Conv3DBackpropFilterV2"),
    },
    Op {
        def: "Conv3DBackpropInputV2(input_sizes: Tshape, filter: T, out_backprop: T) -> output: T; \
              T: {half, bfloat16, float, double}; strides: list(int) >= 5; padding: {\"SAME\", \"VALID\"}; \
              data_format: {\"NDHWC\", \"NCDHW\"} = \"NDHWC\"; dilations: list(int) = [1, 1, 1, 1, 1]; \
              Tshape: {int32, int64} = int32",
        shape: backprop_input_shape,
        grad: Grad::Rule(backprop_input_rule),
        kernel: backprop_input_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Conv3DBackpropFilterV2(input: T, filter_sizes: int32, out_backprop: T) -> output: T; \
              T: {half, bfloat16, float, double}; strides: list(int) >= 5; padding: {\"SAME\", \"VALID\"}; \
              data_format: {\"NDHWC\", \"NCDHW\"} = \"NDHWC\"; dilations: list(int) = [1, 1, 1, 1, 1]",
        shape: backprop_filter_shape,
        grad: Grad::Rule(backprop_filter_rule),
        kernel: backprop_filter_kernel,
        facts: PLAIN,
    },
];

const RULES: ConvRules = ConvRules {
    forward: "Conv3D",
    backprop_input: "Conv3DBackpropInputV2",
    backprop_filter: "Conv3DBackpropFilterV2",
    attrs: &["strides", "padding", "data_format", "dilations"],
};

/// The convolution of `[batch, depth, height, width, channels]` volumes with a
/// `[depth, height, width, channels, filters]` filter; strides are those of all five axes.
pub fn conv3d(input: &Output, filter: &Output, strides: [i64; 5], padding: &str) -> Output {
    let strides = strides.to_vec();
    input.scope().op("Conv3D").input(input).input(filter).attr("strides", strides).attr("padding", padding).output()
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
    static_forward(query, 3)
}

fn as_second(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[1].clone()])
}

fn backprop_input_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    static_sizes(query, 0, 5)
}

fn backprop_filter_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    static_sizes(query, 1, 5)
}

fn forward_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let geometry = Geometry::of_conv(setup, 3)?;
    for_floats!(setup, setup.dtype("T")?, T => {
        Ok(binary(move |ctx, input, filter| run_forward::<T>(ctx, &geometry, input, &filter, Epilogue::NONE)).heavy())
    })
}

fn backprop_input_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let geometry = Geometry::of_conv(setup, 3)?;
    let by_sizes = setup.def().op.ends_with("V2");
    for_floats!(setup, setup.dtype("T")?, T => Ok(many(move |ctx, mut inputs| {
        let (like, filter, grad) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let input = wanted_shape(&like, by_sizes)?;
        if input.rank() != 5 {
            return Err(invalid!("input tensor must have 5 dimensions"));
        }
        let label = "Conv3DBackpropInputOp";
        Ok(outputs![run_grad_input::<T>(ctx, label, &geometry, &input, filter, grad)?])
    })
    .heavy()))
}

fn backprop_filter_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let geometry = Geometry::of_conv(setup, 3)?;
    let by_sizes = setup.def().op.ends_with("V2");
    for_floats!(setup, setup.dtype("T")?, T => Ok(many(move |ctx, mut inputs| {
        let (input, like, grad) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let filter = wanted_shape(&like, by_sizes)?;
        if filter.rank() != 5 {
            return Err(invalid!("filter_sizes tensor must have 5 dimensions"));
        }
        let label = "Conv3DBackpropFilterOp";
        Ok(outputs![run_grad_filter::<T>(ctx, label, &geometry, input, &filter, grad)?])
    })
    .heavy()))
}

/// The shape of a tensor, or the one it holds.
fn wanted_shape(like: &Tensor, by_sizes: bool) -> Result<Shape> {
    match (by_sizes, like.shape().rank()) {
        (false, _) => Ok(like.shape().clone()),
        (true, 1) => made_shape(like),
        (true, _) => Err(invalid!("shape must be a vector of {{int32,int64}}, got shape {}", like.shape())),
    }
}
