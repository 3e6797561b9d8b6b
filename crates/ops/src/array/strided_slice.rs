//! Reading and writing of strided slices: StridedSlice and its relatives.

use super::strided_spec::{Plan, Source, plan};
use super::walk::{Axis, Walk};
use crate::state::target::Target;
use graph::{AttrValue, Node, Output, ShapeQuery};
use math::Pool;
use op::shapes::{integers, none, shape_from_input, unchanged};
use op::{Grad, Grads, Inputs, Kernel, NoGradient, Op, PLAIN, Setup, grads, many, outputs};
use smallvec::SmallVec;
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub use super::strided_spec::Masks;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "StridedSlice(input: T, begin: Index, end: Index, strides: Index) -> output: T; T: type; \
              Index: {int16, int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; \
              new_axis_mask: int = 0; shrink_axis_mask: int = 0",
        shape: slice_shape,
        grad: Grad::Rule(slice_rule),
        kernel: slice_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StridedSliceGrad(shape: Index, begin: Index, end: Index, strides: Index, dy: T) -> output: T; T: type; \
              Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; \
              new_axis_mask: int = 0; shrink_axis_mask: int = 0",
        shape: |query| Ok(vec![shape_from_input(query, 0)]),
        grad: Grad::Rule(grad_rule),
        kernel: grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StridedSliceAssign(ref: Ref(T), begin: Index, end: Index, strides: Index, value: T) -> \
              output_ref: Ref(T); T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; \
              ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: assign_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ResourceStridedSliceAssign(ref: resource, begin: Index, end: Index, strides: Index, value: T); T: type; \
              Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; \
              new_axis_mask: int = 0; shrink_axis_mask: int = 0; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: assign_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorStridedSliceUpdate(input: T, begin: Index, end: Index, strides: Index, value: T) -> output: T; \
              T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; \
              new_axis_mask: int = 0; shrink_axis_mask: int = 0",
        shape: unchanged,
        grad: Grad::Rule(update_rule),
        kernel: update_kernel,
        facts: PLAIN,
    },
];

/// The elements of `input` from `begin` to `end`, `strides` apart, on each axis.
pub fn strided_slice(input: &Output, begin: &Output, end: &Output, strides: &Output, masks: Masks) -> Output {
    let node = input.scope().op("StridedSlice").named("strided_slice");
    masks.write(node.input(input).input(begin).input(end).input(strides)).output()
}

/// `dy` at the places that the slice takes of a tensor of this shape, zeros elsewhere.
pub fn strided_slice_grad(shape: &Output, range: [&Output; 3], dy: &Output, masks: Masks) -> Output {
    let node = dy.scope().op("StridedSliceGrad").input(shape);
    masks.write(range.into_iter().fold(node, |node, bound| node.input(bound)).input(dy)).output()
}

/// `input` with `value` written over the slice from `range[0]` to `range[1]` in steps of `range[2]`.
pub fn tensor_strided_slice_update(input: &Output, range: [&Output; 3], value: &Output, masks: Masks) -> Output {
    let node = input.scope().op("TensorStridedSliceUpdate").input(input);
    masks.write(range.into_iter().fold(node, |node, bound| node.input(bound)).input(value)).output()
}

fn slice_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [input, begin, end, strides] = op.inputs()?;
    let shape = super::shape::shape_as(&input, begin.dtype());
    let masks = Masks::read(|name| op.attr_int(name))?;
    let dx = strided_slice_grad(&shape, [&begin, &end, &strides], dy, masks);
    Ok(grads![dx, NoGradient, NoGradient, NoGradient])
}

fn grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let masks = Masks::read(|name| op.attr_int(name))?;
    let slice = strided_slice(dy, &op.input(1), &op.input(2), &op.input(3), masks);
    Ok(grads![NoGradient, NoGradient, NoGradient, NoGradient, slice])
}

fn update_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [_, begin, end, strides, value] = op.inputs()?;
    let masks = Masks::read(|name| op.attr_int(name))?;
    let zeros = super::fill::zeros_like(&value);
    let input = tensor_strided_slice_update(dy, [&begin, &end, &strides], &zeros, masks);
    let value = strided_slice(dy, &begin, &end, &strides, masks);
    Ok(grads![input, NoGradient, NoGradient, NoGradient, value])
}

fn slice_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let vector = |input: usize| query.constants[input].as_ref().map(integers).transpose();
    let (Some(dims), Some(strides)) = (query.inputs[0].dims(), vector(3)?) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let masks = Masks::read(|name| match query.attr(name)? {
        AttrValue::Int(mask) => Ok(*mask),
        _ => Err(invalid!("attr '{name}' is not an int")),
    })?;
    let (begin, end) = (vector(1)?, vector(2)?);
    let fits = |bound: &Option<Vec<i64>>| bound.as_ref().is_none_or(|bound| bound.len() == strides.len());
    if !fits(&begin) || !fits(&end) {
        return Err(invalid!("Expected begin, end, and strides to be 1D equal size tensors"));
    }
    let plan = plan(masks, begin.as_deref(), end.as_deref(), &strides, dims)?;
    Ok(vec![PartialShape::new(&plan.dims())])
}

/// The slice of a tensor of this shape that inputs 1 to 3 describe.
fn plan_of(inputs: &mut Inputs, masks: Masks, shape: &Shape) -> Result<Plan> {
    let (begin, end, strides) = (inputs.tensor(1)?, inputs.tensor(2)?, inputs.tensor(3)?);
    let count = strides.elements();
    let vector = |tensor: &Tensor| tensor.shape().rank() == 1 && tensor.elements() == count;
    if !vector(&begin) || !vector(&end) || !vector(&strides) || count >= 32 {
        return Err(invalid!(
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes {}, {}, and {} instead.",
            begin.shape(),
            end.shape(),
            strides.shape()
        ));
    }
    let (begin, end) = (integers(&begin)?, integers(&end)?);
    plan(masks, Some(&begin), Some(&end), &integers(&strides)?, &shape.to_i64())
}

fn slice_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let masks = Masks::of(setup)?;
    Ok(many(move |ctx, mut inputs| {
        let input = inputs.tensor(0)?;
        let plan = plan_of(&mut inputs, masks, input.shape())?;
        Ok(outputs![extract(ctx.pool(), input, &plan)?])
    }))
}

/// The elements of a slice; a view if they are one run.
fn extract(pool: &Pool, input: Tensor, plan: &Plan) -> Result<Tensor> {
    let shape = Shape::checked(&plan.dims())?;
    if shape.elements() == 0 {
        return Tensor::zeros_of(input.dtype(), shape);
    }
    let strides = input.shape().strides();
    let start = plan.pieces.iter().zip(&strides).map(|(piece, stride)| piece.start as usize * stride).sum();
    let part: Shape = plan.pieces.iter().map(|piece| piece.len as usize).collect();
    if plan.pieces.iter().all(|piece| piece.step == 1) && super::slice::is_run(input.shape(), &part) {
        return if shape.elements() == input.elements() {
            input.reshaped(shape)
        } else {
            input.slice_elements(start, shape)
        };
    }
    let mut out = Tensor::scratch_of(input.dtype(), shape)?;
    let dense = part.strides();
    let axis = |i: usize| {
        let piece = plan.pieces[i];
        Axis { len: piece.len as usize, src: piece.step as isize * strides[i] as isize, dst: dense[i] }
    };
    Walk::new(start, 0, (0..part.rank()).map(axis)).copy(pool, &input, &mut out)?;
    Ok(out)
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let masks = Masks::of(setup)?;
    Ok(many(move |ctx, mut inputs| {
        let (shape, dy) = (inputs.tensor(0)?, inputs.tensor(4)?);
        if shape.shape().rank() != 1 {
            return Err(invalid!("shape must be 1-D, got shape.shape = {}", shape.shape()));
        }
        let shape = super::args::to_shape(&shape)?;
        let plan = plan_of(&mut inputs, masks, &shape)?;
        let wanted = Shape::checked(&plan.dims())?;
        if wanted != *dy.shape() {
            return Err(invalid!("shape of dy was {} instead of {wanted}", dy.shape()));
        }
        if dy.elements() == shape.elements() && plan.pieces.iter().all(|piece| piece.step == 1) {
            return Ok(outputs![dy.reshaped(shape)?]);
        }
        let mut dx = Tensor::zeros_of(dy.dtype(), shape)?;
        put(ctx.pool(), &mut dx, &dy, &plan)?;
        Ok(outputs![dx])
    })
    .heavy())
}

fn assign_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (masks, target) = (Masks::of(setup)?, Target::of(setup));
    Ok(many(move |ctx, mut inputs| {
        let variable = target.take(&mut inputs, 0)?;
        let value = inputs.tensor(4)?;
        variable.update(|tensor| {
            if tensor.dtype() != value.dtype() {
                let (lhs, rhs) = (tensor.dtype(), value.dtype());
                return Err(invalid!("l-value dtype {lhs} does not match r-value dtype {rhs}"));
            }
            let plan = plan_of(&mut inputs, masks, tensor.shape())?;
            put(ctx.pool(), tensor, &value, &plan)
        })?;
        Ok(target.outputs(variable))
    }))
}

fn update_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let masks = Masks::of(setup)?;
    Ok(many(move |ctx, mut inputs| {
        let (mut tensor, value) = (inputs.tensor(0)?, inputs.tensor(4)?);
        let plan = plan_of(&mut inputs, masks, tensor.shape())?;
        put(ctx.pool(), &mut tensor, &value, &plan)?;
        Ok(outputs![tensor])
    }))
}

/// Writes `value`, repeated where it has length one, over the slice.
fn put(pool: &Pool, tensor: &mut Tensor, value: &Tensor, plan: &Plan) -> Result<()> {
    let shape = Shape::checked(&plan.dims())?;
    // TensorFlow looks at the value's shape only if there is something to write.
    if plan.pieces.iter().any(|piece| piece.len == 0) {
        return Ok(());
    }
    let steps = steps_into(value.shape(), &shape)
        .ok_or_else(|| invalid!("Cannot broadcast input shape {} into final shape {shape}", value.shape()))?;
    let mut by_axis: SmallVec<[usize; 4]> = SmallVec::from_elem(0, plan.pieces.len());
    for (source, &step) in plan.result.iter().zip(&steps) {
        if let Source::Axis(axis) = source {
            by_axis[*axis] = step;
        }
    }
    let (mut src_start, mut dst_start) = (0, 0);
    let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
    for ((piece, stride), step) in plan.pieces.iter().zip(tensor.shape().strides()).zip(by_axis) {
        let len = piece.len as usize;
        let dst = piece.step.unsigned_abs() as usize * stride;
        // A slice that runs backwards is written forwards, from the end of the value.
        let (first, src) = if piece.step > 0 {
            (piece.start as usize, step as isize)
        } else {
            src_start += (len - 1) * step;
            (piece.start as usize - (len - 1) * piece.step.unsigned_abs() as usize, -(step as isize))
        };
        dst_start += first * stride;
        axes.push(Axis { len, src, dst });
    }
    Walk::new(src_start, dst_start, axes).copy(pool, value, tensor)
}

/// The stride of each axis of `shape` in a value that is broadcast to it, which is zero where the value has length
/// one. None if the value cannot be broadcast.
fn steps_into(value: &Shape, shape: &Shape) -> Option<SmallVec<[usize; 4]>> {
    let extra = value.rank().saturating_sub(shape.rank());
    if value[..extra].iter().any(|&dim| dim != 1) {
        return None;
    }
    let (dims, strides) = (&value[extra..], &value.strides()[extra..]);
    let missing = shape.rank() - dims.len();
    let step = |axis: usize| match axis.checked_sub(missing) {
        None => Some(0),
        Some(at) if dims[at] == shape[axis] => Some(strides[at]),
        Some(at) => (dims[at] == 1).then_some(0),
    };
    (0..shape.rank()).map(step).collect()
}
