//! Broadcasting: BroadcastTo, BroadcastArgs, BroadcastGradientArgs.

use super::args::to_shape;
use super::walk::{Axis, Walk};
use graph::{Node, Output, ShapeQuery};
use math::Pool;
use op::shapes::{integers, shape_from_input};
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads, many, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "BroadcastTo(input: T, shape: Tidx) -> output: T; T: type; Tidx: {int32, int64} = int32",
        shape: |query| Ok(vec![shape_from_input(query, 1)]),
        grad: Grad::Rule(broadcast_to_rule),
        kernel: broadcast_to_kernel,
        facts: PLAIN,
    },
    Op {
        def: "BroadcastArgs(s0: T, s1: T) -> r0: T; T: {int32, int64} = int32",
        shape: args_shape,
        grad: Grad::Stop,
        kernel: args_kernel,
        facts: PLAIN,
    },
    Op {
        def: "BroadcastGradientArgs(s0: T, s1: T) -> r0: T, r1: T; T: {int32, int64} = int32",
        shape: |_| Ok(vec![PartialShape::of_rank(1); 2]),
        grad: Grad::Stop,
        kernel: gradient_args_kernel,
        facts: PLAIN,
    },
];

/// `input` repeated along axes of length one, to the shape that the vector `shape` holds.
pub fn broadcast_to(input: &Output, shape: &Output) -> Output {
    input.scope().op("BroadcastTo").input(input).input(shape).output()
}

/// The shape that two shapes are broadcast to.
pub fn broadcast_args(lhs: &Output, rhs: &Output) -> Output {
    lhs.scope().op("BroadcastArgs").input(lhs).input(rhs).output()
}

/// The axes over which the gradient of a broadcast operation is summed, for each of its two operands.
pub fn broadcast_gradient_args(lhs: &Output, rhs: &Output) -> (Output, Output) {
    let node = lhs.scope().op("BroadcastGradientArgs").input(lhs).input(rhs).node();
    (node.output(0), node.output(1))
}

/// Every element gets the sum of the gradients of its copies.
fn broadcast_to_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (input, shape) = (op.input(0), op.input(1));
    let from = super::shape::shape_as(&input, shape.dtype());
    let (_, axes) = broadcast_gradient_args(&shape, &from);
    let sum = dy.scope().op("Sum").input(dy).input(&axes).attr("keep_dims", true).output();
    Ok(grads![super::reshape::reshape(&sum, &from), NoGradient])
}

fn args_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let longest = match (query.inputs[0].dim(0), query.inputs[1].dim(0)) {
        (Some(x), Some(y)) => x.max(y) as i64,
        _ => -1,
    };
    Ok(vec![PartialShape::new(&[longest])])
}

fn broadcast_to_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|ctx, input, shape| run_broadcast_to(ctx.pool(), input, &shape)).heavy())
}

fn run_broadcast_to(pool: &Pool, input: Tensor, shape: &Tensor) -> Result<Tensor> {
    if shape.shape().rank() > 1 {
        return Err(invalid!("shape must be a vector, got shape {}", shape.shape()));
    }
    let shape = to_shape(shape)?;
    let from = input.shape();
    if *from == shape {
        return Ok(input);
    }
    let Some(missing) = shape.rank().checked_sub(from.rank()) else {
        return Err(invalid!(
            "Rank of input ({}) must be no greater than rank of output shape ({}).",
            from.rank(),
            shape.rank()
        ));
    };
    for (&dim, &wanted) in from.iter().zip(&shape[missing..]) {
        match (dim, wanted) {
            (1, _) => {}
            (_, 1) => return Err(invalid!("Unable to broadcast tensor of shape {from} to tensor of shape {shape}")),
            _ if dim != wanted => return Err(invalid!("Incompatible shapes: {from} vs. {shape}")),
            _ => {}
        }
    }
    let mut out = Tensor::scratch_of(input.dtype(), &shape)?;
    if out.elements() > 0 {
        let (src, dst) = (from.strides(), shape.strides());
        let axis = |axis: usize| {
            let own = axis.checked_sub(missing).filter(|&own| from[own] != 1);
            Axis { len: shape[axis], src: own.map_or(0, |own| src[own] as isize), dst: dst[axis] }
        };
        Walk::new(0, 0, (0..shape.rank()).map(axis)).copy(pool, &input, &mut out)?;
    }
    Ok(out)
}

/// Both shapes, checked to be vectors.
fn vectors(lhs: &Tensor, rhs: &Tensor) -> Result<[Vec<i64>; 2]> {
    for (index, shape) in [lhs, rhs].into_iter().enumerate() {
        if shape.shape().rank() != 1 {
            return Err(invalid!("In[{index}] must be a vector.{}", shape.shape()));
        }
    }
    Ok([integers(lhs)?, integers(rhs)?])
}

/// The dimensions of both shapes from the last to the first, with ones where one has none.
fn paired([lhs, rhs]: &[Vec<i64>; 2]) -> impl Iterator<Item = (i64, i64)> + '_ {
    let at = |dims: &[i64], back: usize| dims.len().checked_sub(back + 1).map_or(1, |axis| dims[axis]);
    (0..lhs.len().max(rhs.len())).map(move |back| (at(lhs, back), at(rhs, back)))
}

fn check_compatible(shapes: &[Vec<i64>; 2]) -> Result<()> {
    if paired(shapes).all(|(x, y)| x == y || x == 1 || y == 1) {
        return Ok(());
    }
    let listed = |dims: &[i64]| dims.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    Err(invalid!("Incompatible shapes: [{}] vs. [{}]", listed(&shapes[0]), listed(&shapes[1])))
}

fn args_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("T")?;
    Ok(binary(move |_, lhs, rhs| {
        let shapes = vectors(&lhs, &rhs)?;
        check_compatible(&shapes)?;
        let mut dims: Vec<i64> = paired(&shapes).map(|(x, y)| if x == 1 { y } else { x }).collect();
        dims.reverse();
        Ok(vector_of(dtype, &dims))
    })
    .free())
}

fn gradient_args_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("T")?;
    Ok(many(move |_, mut inputs| {
        let shapes = vectors(&inputs.tensor(0)?, &inputs.tensor(1)?)?;
        check_compatible(&shapes)?;
        let [lhs, rhs] = summed_axes(&shapes);
        Ok(outputs![vector_of(dtype, &lhs), vector_of(dtype, &rhs)])
    })
    .free())
}

/// The axes of length one that were repeated. An axis on which both have length one counts for both, unless the shapes
/// are equal: as TensorFlow has it, and summing over it changes nothing.
fn summed_axes(shapes: &[Vec<i64>; 2]) -> [Vec<i64>; 2] {
    if shapes[0] == shapes[1] {
        return Default::default();
    }
    let rank = shapes[0].len().max(shapes[1].len()) as i64;
    let ones = |pick: fn((i64, i64)) -> i64| {
        let mut axes: Vec<i64> =
            paired(shapes).zip((0..rank).rev()).filter(|&(dims, _)| pick(dims) == 1).map(|(_, axis)| axis).collect();
        axes.reverse();
        axes
    };
    [ones(|dims| dims.0), ones(|dims| dims.1)]
}

/// A vector of int32 or int64.
fn vector_of(dtype: DType, values: &[i64]) -> Tensor {
    match dtype {
        DType::I64 => Tensor::vector::<i64>(values),
        _ => Tensor::vector::<i32>(&values.iter().map(|&value| value as i32).collect::<Vec<_>>()),
    }
}
