//! Arrays of tensors that loops write and read, with gradients that sum what was read.

mod kernels;
mod slots;

use self::kernels::*;
use graph::{AttrValue, Node, Output, Scope, ShapeQuery};
use op::shapes::{none, scalar, unknown};
use op::{Grad, Grads, NoGradient, Op, PLAIN, grads};
use status::Result;
use tensor::{DType, PartialShape};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "TensorArray(size: int32) -> handle: Ref(string); dtype: type; dynamic_size: bool = false; \
              clear_after_read: bool = true; tensor_array_name: string = \"\"; element_shape: shape = ?; stateful",
        shape: made_shape,
        grad: Grad::Stop,
        kernel: make_kernel,
        facts: PLAIN.removed_in(16, "Use TensorArrayV3"),
    },
    Op {
        def: "TensorArrayWrite(handle: Ref(string), index: int32, value: T, flow_in: float) -> flow_out: float; T: \
              type",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: write_kernel,
        facts: PLAIN.removed_in(16, "Use TensorArrayWriteV3"),
    },
    Op {
        def: "TensorArrayRead(handle: Ref(string), index: int32, flow_in: float) -> value: dtype; dtype: type",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: read_kernel,
        facts: PLAIN.removed_in(16, "Use TensorArrayReadV3"),
    },
    Op {
        def: "TensorArrayGather(handle: Ref(string), indices: int32, flow_in: float) -> value: dtype; dtype: type; \
              element_shape: shape = ?",
        shape: gather_shape,
        grad: Grad::Unknown,
        kernel: gather_kernel,
        facts: PLAIN.removed_in(16, "Use TensorArrayGatherV3"),
    },
    Op {
        def: "TensorArrayScatter(handle: Ref(string), indices: int32, value: T, flow_in: float) -> flow_out: float; \
              T: type",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: scatter_kernel,
        facts: PLAIN.removed_in(19, "Use TensorArrayGradV3"),
    },
    Op {
        def: "TensorArrayPack(handle: Ref(string), flow_in: float) -> value: dtype; dtype: type; \
              element_shape: shape = ?",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: pack_kernel,
        facts: PLAIN.removed_in(16, "Use TensorArrayGatherV3 with RangeOp"),
    },
    Op {
        def: "TensorArrayUnpack(handle: Ref(string), value: T, flow_in: float) -> flow_out: float; T: type",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: unpack_kernel,
        facts: PLAIN.removed_in(20, "Use TensorArrayScatterV3 with RangeOp"),
    },
    Op {
        def: "TensorArrayConcat(handle: Ref(string), flow_in: float) -> value: dtype, lengths: int64; dtype: type; \
              element_shape_except0: shape = ?",
        shape: concat_shape,
        grad: Grad::Unknown,
        kernel: concat_kernel,
        facts: PLAIN.removed_in(16, "Use TensorArrayGradV3"),
    },
    Op {
        def: "TensorArraySplit(handle: Ref(string), value: T, lengths: int64, flow_in: float) -> flow_out: float; \
              T: type",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: split_kernel,
        facts: PLAIN.removed_in(16, "Use TensorArraySplitV3"),
    },
    Op {
        def: "TensorArraySize(handle: Ref(string), flow_in: float) -> size: int32",
        shape: scalar,
        grad: Grad::Stop,
        kernel: size_kernel,
        facts: PLAIN.removed_in(16, "Use TensorArraySizeV3"),
    },
    Op {
        def: "TensorArrayClose(handle: Ref(string))",
        shape: none,
        grad: Grad::Stop,
        kernel: close_kernel,
        facts: PLAIN.removed_in(16, "Use TensorArrayCloseV3"),
    },
    Op {
        def: "TensorArrayV2(size: int32) -> handle: string; dtype: type; element_shape: shape = ?; dynamic_size: \
              bool = false; clear_after_read: bool = true; tensor_array_name: string = \"\"; stateful",
        shape: made_shape,
        grad: Grad::Stop,
        kernel: make_kernel,
        facts: PLAIN.removed_in(26, "Use TensorArrayV3").runs_unread(),
    },
    Op {
        def: "TensorArrayWriteV2(handle: string, index: int32, value: T, flow_in: float) -> flow_out: float; T: \
              type",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: write_kernel,
        facts: PLAIN.removed_in(26, "Use TensorArrayWriteV3").runs_unread(),
    },
    Op {
        def: "TensorArrayReadV2(handle: string, index: int32, flow_in: float) -> value: dtype; dtype: type",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: read_kernel,
        facts: PLAIN.removed_in(26, "Use TensorArrayReadV3").runs_unread(),
    },
    Op {
        def: "TensorArrayGatherV2(handle: string, indices: int32, flow_in: float) -> value: dtype; dtype: type; \
              element_shape: shape = ?",
        shape: gather_shape,
        grad: Grad::Unknown,
        kernel: gather_kernel,
        facts: PLAIN.removed_in(26, "Use TensorArrayGatherV3").runs_unread(),
    },
    Op {
        def: "TensorArrayScatterV2(handle: string, indices: int32, value: T, flow_in: float) -> flow_out: float; T: \
              type",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: scatter_kernel,
        facts: PLAIN.removed_in(26, "Use TensorArrayScatterV3").runs_unread(),
    },
    Op {
        def: "TensorArrayConcatV2(handle: string, flow_in: float) -> value: dtype, lengths: int64; dtype: type; \
              element_shape_except0: shape = ?",
        shape: concat_shape,
        grad: Grad::Unknown,
        kernel: concat_kernel,
        facts: PLAIN.runs_unread(),
    },
    Op {
        def: "TensorArraySplitV2(handle: string, value: T, lengths: int64, flow_in: float) -> flow_out: float; T: \
              type",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: split_kernel,
        facts: PLAIN.removed_in(26, "Use TensorArraySplitV3").runs_unread(),
    },
    Op {
        def: "TensorArraySizeV2(handle: string, flow_in: float) -> size: int32",
        shape: scalar,
        grad: Grad::Stop,
        kernel: size_kernel,
        facts: PLAIN.removed_in(26, "Use TensorArraySizeV3").runs_unread(),
    },
    Op {
        def: "TensorArrayCloseV2(handle: string)",
        shape: none,
        grad: Grad::Stop,
        kernel: close_kernel,
        facts: PLAIN.removed_in(26, "Use TensorArrayCloseV3").runs_unread(),
    },
    Op {
        def: "TensorArrayV3(size: int32) -> handle: resource, flow: float; dtype: type; element_shape: shape = ?; \
              dynamic_size: bool = false; clear_after_read: bool = true; identical_element_shapes: bool = false; \
              tensor_array_name: string = \"\"; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: make_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorArrayWriteV3(handle: resource, index: int32, value: T, flow_in: float) -> flow_out: float; T: \
              type; stateful",
        shape: scalar,
        grad: Grad::Rule(write_rule),
        kernel: write_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorArrayReadV3(handle: resource, index: int32, flow_in: float) -> value: dtype; dtype: type; \
              stateful",
        shape: unknown,
        grad: Grad::Rule(read_rule),
        kernel: read_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorArrayGatherV3(handle: resource, indices: int32, flow_in: float) -> value: dtype; dtype: type; \
              element_shape: shape = ?; stateful",
        shape: gather_shape,
        grad: Grad::Rule(gather_rule),
        kernel: gather_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorArrayScatterV3(handle: resource, indices: int32, value: T, flow_in: float) -> flow_out: float; \
              T: type; stateful",
        shape: scalar,
        grad: Grad::Rule(scatter_rule),
        kernel: scatter_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorArrayConcatV3(handle: resource, flow_in: float) -> value: dtype, lengths: int64; dtype: type; \
              element_shape_except0: shape = ?; stateful",
        shape: concat_shape,
        grad: Grad::Rules(concat_rule),
        kernel: concat_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorArraySplitV3(handle: resource, value: T, lengths: int64, flow_in: float) -> flow_out: float; T: \
              type; stateful",
        shape: scalar,
        grad: Grad::Rule(split_rule),
        kernel: split_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorArraySizeV3(handle: resource, flow_in: float) -> size: int32; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: size_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorArrayCloseV3(handle: resource); stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: close_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorArrayGrad(handle: string, flow_in: float) -> grad_handle: Ref(string); source: string; stateful",
        shape: made_shape,
        grad: Grad::Stop,
        kernel: gradients_kernel,
        facts: PLAIN.removed_in(16, "Use TensorArrayGradV3"),
    },
    Op {
        def: "TensorArrayGradV2(handle: string, flow_in: float) -> grad_handle: string; source: string; stateful",
        shape: made_shape,
        grad: Grad::Stop,
        kernel: gradients_kernel,
        facts: PLAIN.removed_in(26, "Use TensorArrayGradV3"),
    },
    Op {
        def: "TensorArrayGradV3(handle: resource, flow_in: float) -> grad_handle: resource, flow_out: float; \
              source: string; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: gradients_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorArrayGradWithShape(handle: resource, flow_in: float, shape_to_prepend: int32) -> grad_handle: \
              resource, flow_out: float; source: string; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: gradients_kernel,
        facts: PLAIN,
    },
];

/// A new array of `size` tensors: its handle, and its flow, a value that orders the ops on the array.
pub fn tensor_array(scope: &Scope, size: &Output, dtype: DType, element_shape: &PartialShape) -> (Output, Output) {
    let op = scope.op("TensorArrayV3").input(size).attr("dtype", dtype).attr("element_shape", element_shape);
    let node = op.attr("identical_element_shapes", true).node();
    (node.output(0), node.output(1))
}

/// Writes a tensor to a place; passes the flow on.
pub fn tensor_array_write(handle: &Output, index: &Output, value: &Output, flow: &Output) -> Output {
    handle.scope().op("TensorArrayWriteV3").input(handle).input(index).input(value).input(flow).output()
}

/// The tensor at a place.
pub fn tensor_array_read(handle: &Output, index: &Output, flow: &Output, dtype: DType) -> Output {
    handle.scope().op("TensorArrayReadV3").input(handle).input(index).input(flow).attr("dtype", dtype).output()
}

/// The tensors at several places, as rows of one.
pub fn tensor_array_gather(handle: &Output, indices: &Output, flow: &Output, dtype: DType) -> Output {
    handle.scope().op("TensorArrayGatherV3").input(handle).input(indices).input(flow).attr("dtype", dtype).output()
}

/// Writes the rows of a tensor to several places; passes the flow on.
pub fn tensor_array_scatter(handle: &Output, indices: &Output, value: &Output, flow: &Output) -> Output {
    handle.scope().op("TensorArrayScatterV3").input(handle).input(indices).input(value).input(flow).output()
}

/// The number of elements.
pub fn tensor_array_size(handle: &Output, flow: &Output) -> Output {
    handle.scope().op("TensorArraySizeV3").input(handle).input(flow).output()
}

/// The array that collects the gradients of another; gradients of different calls must not meet in one, so the
/// scope of the call is part of its name.
fn gradients(op: &Node, flow: &Output, near: &Output) -> (Output, Output) {
    let handle = op.input(0);
    let scope = near.scope().beside(handle.node());
    let source = call_of(scope.prefix());
    let node = scope.op("TensorArrayGradV3").input(&handle).input(flow).attr("source", source).node();
    (node.output(0), node.output(1))
}

/// The part of a name prefix up to its last part that begins with `gradients`.
fn call_of(prefix: &str) -> String {
    let parts: Vec<&str> = prefix.trim_end_matches('/').split('/').collect();
    let last = parts.iter().rposition(|part| part.starts_with("gradients"));
    parts[..last.map_or(parts.len(), |last| last + 1)].join("/")
}

/// The incoming flow, once the forward op has run: only then has the array its final size.
fn barrier(op: &Node, flow: &Output) -> Output {
    flow.scope().op("Identity").input(flow).after(op).output()
}

fn read_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (handle, flow) = gradients(op, &op.input(2), dy);
    Ok(grads![NoGradient, NoGradient, tensor_array_write(&handle, &op.input(1), dy, &flow)])
}

fn write_rule(op: &Node, dflow: &Output) -> Result<Grads> {
    let flow = barrier(op, dflow);
    let (handle, grad_flow) = gradients(op, &flow, dflow);
    let value = tensor_array_read(&handle, &op.input(1), &grad_flow, op.attr_type("T")?);
    Ok(grads![NoGradient, NoGradient, value, flow])
}

fn gather_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (handle, flow) = gradients(op, &op.input(2), dy);
    Ok(grads![NoGradient, NoGradient, tensor_array_scatter(&handle, &op.input(1), dy, &flow)])
}

fn scatter_rule(op: &Node, dflow: &Output) -> Result<Grads> {
    let flow = barrier(op, dflow);
    let (handle, grad_flow) = gradients(op, &flow, dflow);
    let value = tensor_array_gather(&handle, &op.input(1), &grad_flow, op.attr_type("T")?);
    Ok(grads![NoGradient, NoGradient, value, flow])
}

fn concat_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let Some(Some(dy)) = dys.first() else { return Ok(grads![NoGradient, NoGradient]) };
    let (handle, flow) = gradients(op, &op.input(1), dy);
    let split = handle.scope().op("TensorArraySplitV3").input(&handle).input(dy).input(&op.output(1)).input(&flow);
    Ok(grads![NoGradient, split.output()])
}

fn split_rule(op: &Node, dflow: &Output) -> Result<Grads> {
    let flow = barrier(op, dflow);
    let (handle, grad_flow) = gradients(op, &flow, dflow);
    let concat = handle.scope().op("TensorArrayConcatV3").input(&handle).input(&grad_flow);
    let value = concat.attr("dtype", op.attr_type("T")?).output();
    Ok(grads![NoGradient, value, NoGradient, flow])
}

fn made_shape(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::new(&[2])])
}

fn gather_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let rows = query.inputs[1].dim(0).map_or(-1, |rows| rows as i64);
    rows_of(query, "element_shape", rows).map(|shape| vec![shape])
}

fn concat_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![rows_of(query, "element_shape_except0", -1)?, PartialShape::of_rank(1)])
}

/// The shape of a number of rows, each of the shape in an attribute.
fn rows_of(query: &ShapeQuery<'_>, attr: &str, rows: i64) -> Result<PartialShape> {
    match query.attr(attr)? {
        AttrValue::Shape(shape) if shape.dims().is_some() => {
            Ok(PartialShape::new(&[&[rows], shape.dims().unwrap_or_default()].concat()))
        }
        _ => Ok(PartialShape::unknown()),
    }
}
