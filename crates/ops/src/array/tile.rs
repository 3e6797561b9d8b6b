//! Repeats tensors: Tile, TileGrad.

use super::walk::{Axis, Walk};
use graph::{Node, Output, ShapeQuery};
use math::Pool;
use math::function::Number;
use op::shapes::integers;
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Tile(input: T, multiples: Tmultiples) -> output: T; T: type; Tmultiples: {int32, int64} = int32",
        shape: tile_shape,
        grad: Grad::Rule(tile_rule),
        kernel: tile_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TileGrad(input: T, multiples: int32) -> output: T; T: type",
        shape: |query| Ok(vec![query.inputs[0].rank().map_or(PartialShape::unknown(), PartialShape::of_rank)]),
        grad: Grad::Stop,
        kernel: tile_grad_kernel,
        facts: PLAIN.removed_in(3, "TileGrad has been replaced with reduce_sum"),
    },
];

/// `input` repeated `multiples[i]` times along axis `i`.
pub fn tile(input: &Output, multiples: &Output) -> Output {
    input.scope().op("Tile").input(input).input(multiples).output()
}

/// Every element gets the sum of the gradients of its copies: the rule splits each axis into copies and elements, and
/// sums over the copies.
fn tile_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (input, multiples) = (op.input(0), op.input(1));
    let scope = dy.scope();
    let dtype = multiples.dtype();
    let constant = |value: Tensor| super::constant::constant(scope, value);
    let pairs = super::pack::pack(scope, &[multiples, super::shape::shape_as(&input, dtype)], 1);
    let cut = super::reshape::reshape(&pairs, &constant(Tensor::vector(&[-1_i32])));
    let copies = super::range::range(
        &constant(Tensor::scalar(0_i32)),
        &super::shape::size(&cut),
        &constant(Tensor::scalar(2_i32)),
    );
    let dy = super::reshape::reshape(dy, &cut);
    Ok(grads![scope.op("Sum").input(&dy).input(&copies).output(), NoGradient])
}

fn tile_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let rank = query.inputs[0].rank().or(query.inputs[1].dim(0)).filter(|&rank| rank <= Shape::MAX_RANK);
    let Some(rank) = rank else { return Ok(vec![PartialShape::unknown()]) };
    let multiples = query.constants[1].as_ref().map(integers).transpose()?;
    Ok(vec![match (query.inputs[0].dims(), multiples) {
        (Some(dims), Some(multiples)) if dims.len() == multiples.len() => {
            let tiled = |(&dim, &count): (&i64, &i64)| if dim < 0 { -1 } else { dim.saturating_mul(count) };
            PartialShape::new(&dims.iter().zip(&multiples).map(tiled).collect::<Vec<_>>())
        }
        _ => PartialShape::of_rank(rank),
    }])
}

fn tile_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|ctx, input, multiples| run_tile(ctx.pool(), input, &multiples)).heavy())
}

fn multiples_of(input: &Tensor, multiples: &Tensor) -> Result<Vec<i64>> {
    if multiples.shape().rank() != 1 {
        return Err(invalid!("Expected multiples to be 1-D, but got shape {}", multiples.shape()));
    }
    if multiples.elements() != input.shape().rank() {
        return Err(invalid!(
            "Expected multiples argument to be a vector of length {} but got length {}",
            input.shape().rank(),
            multiples.elements()
        ));
    }
    integers(multiples)
}

fn run_tile(pool: &Pool, input: Tensor, multiples: &Tensor) -> Result<Tensor> {
    let multiples = multiples_of(&input, multiples)?;
    if let Some((axis, count)) = multiples.iter().enumerate().find(|(_, count)| **count < 0) {
        return Err(invalid!("Expected multiples[{axis}] >= 0, but got {count}"));
    }
    let dims = input.shape().iter().zip(&multiples).map(|(&dim, &count)| (dim as i64).saturating_mul(count));
    let shape = Shape::checked(&dims.collect::<Vec<_>>())?;
    if shape == *input.shape() {
        return Ok(input);
    }
    let mut out = Tensor::scratch_of(input.dtype(), &shape)?;
    if out.elements() > 0 {
        let (src, dst) = (input.shape().strides(), shape.strides());
        let axes = (0..shape.rank()).flat_map(|axis| {
            let len = input.shape()[axis];
            let copies = Axis { len: multiples[axis] as usize, src: 0, dst: len * dst[axis] };
            [copies, Axis { len, src: src[axis] as isize, dst: dst[axis] }]
        });
        Walk::new(0, 0, axes).copy(pool, &input, &mut out)?;
    }
    Ok(out)
}

fn tile_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_numbers!(setup, setup.dtype("T")?, T => Ok(binary(|_, input, multiples| run_tile_grad::<T>(input, &multiples))))
}

fn run_tile_grad<T: Element + Number>(input: Tensor, multiples: &Tensor) -> Result<Tensor> {
    let multiples = multiples_of(&input, multiples)?;
    let mut shape = Shape::scalar();
    for (axis, (&dim, &count)) in input.shape().iter().zip(&multiples).enumerate() {
        if count <= 0 {
            return Err(invalid!("Expected multiples[{axis}] > 0, but got {count}"));
        }
        if dim as i64 % count != 0 {
            return Err(invalid!(
                "Expected input_dim[{axis}] to be divisible by multiples[{axis}], but {dim} % {count} != 0"
            ));
        }
        shape.dims_mut().push(dim / count as usize);
    }
    if shape == *input.shape() {
        return Ok(input);
    }
    let mut out = Tensor::zeros_of(input.dtype(), &shape)?;
    let (strides, sums) = (input.shape().strides(), out.values_mut::<T>()?);
    for (place, &value) in input.values::<T>()?.iter().enumerate() {
        let home = (0..shape.rank())
            .fold(0, |home, axis| home * shape[axis] + place / strides[axis] % input.shape()[axis] % shape[axis]);
        sums[home] = sums[home].add(value);
    }
    Ok(out)
}
