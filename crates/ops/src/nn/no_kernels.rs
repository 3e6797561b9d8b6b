//! Conv2DBackpropInputV2, Conv2DBackpropFilterV2 and CTCLossV2, for which TensorFlow has no kernels for processors.

use op::{Grad, Op, PLAIN, ShapeQuery};
use status::Result;
use tensor::PartialShape;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Conv2DBackpropInputV2(input: T, filter: T, out_backprop: T) -> output: T; \
              T: {half, bfloat16, float, double, int32}; strides: list(int); use_cudnn_on_gpu: bool = true; \
              padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; \
              data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]",
        shape: |query| shape_of(query, 0),
        grad: Grad::Unknown,
        kernel: |setup| Err(setup.no_kernel()),
        facts: PLAIN,
    },
    Op {
        def: "Conv2DBackpropFilterV2(input: T, filter: T, out_backprop: T) -> output: T; \
              T: {half, bfloat16, float, double}; strides: list(int); use_cudnn_on_gpu: bool = true; \
              padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; \
              data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]",
        shape: |query| shape_of(query, 1),
        grad: Grad::Unknown,
        kernel: |setup| Err(setup.no_kernel()),
        facts: PLAIN,
    },
    Op {
        def: "CTCLossV2(inputs: float, labels_indices: int64, labels_values: int32, sequence_length: int32) -> \
              loss: float, gradient: float; preprocess_collapse_repeated: bool = false; \
              ctc_merge_repeated: bool = true; ignore_longer_outputs_than_inputs: bool = false",
        shape: loss_shape,
        grad: Grad::Unknown,
        kernel: |setup| Err(setup.no_kernel()),
        facts: PLAIN,
    },
];

fn shape_of(query: &ShapeQuery<'_>, input: usize) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[input].merge(&PartialShape::of_rank(4))?])
}

fn loss_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let inputs = query.inputs[0].merge(&PartialShape::of_rank(3))?;
    let batch = inputs.dim(1).map_or(-1, |batch| batch as i64);
    Ok(vec![PartialShape::new(&[batch]), inputs])
}
