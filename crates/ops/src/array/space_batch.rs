//! Moves blocks of space to the batch, and back: SpaceToBatch, SpaceToBatchND, BatchToSpace, BatchToSpaceND.

use super::pad::padded;
use super::slice::block;
use super::transpose::permuted;
use graph::{AttrValue, Node, Output, ShapeQuery};
use math::Pool;
use op::shapes::integers;
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SpaceToBatch(input: T, paddings: Tpaddings) -> output: T; T: type; Tpaddings: {int32, int64} = int32; \
              block_size: int >= 2",
        shape: |query| square_shape(query, into_batch),
        grad: Grad::Rule(|op, dy| square_rule("BatchToSpace", op, dy)),
        kernel: |setup| square_kernel(setup, "paddings", run_into_batch),
        facts: PLAIN,
    },
    Op {
        def: "SpaceToBatchND(input: T, block_shape: Tblock_shape, paddings: Tpaddings) -> output: T; T: type; \
              Tblock_shape: {int32, int64} = int32; Tpaddings: {int32, int64} = int32",
        shape: |query| block_shape(query, into_batch),
        grad: Grad::Rule(|op, dy| block_rule("BatchToSpaceND", op, dy)),
        kernel: |_| Ok(block_kernel("paddings", run_into_batch)),
        facts: PLAIN,
    },
    Op {
        def: "BatchToSpace(input: T, crops: Tidx) -> output: T; T: type; block_size: int >= 2; \
              Tidx: {int32, int64} = int32",
        shape: |query| square_shape(query, out_of_batch),
        grad: Grad::Rule(|op, dy| square_rule("SpaceToBatch", op, dy)),
        kernel: |setup| square_kernel(setup, "crops", run_out_of_batch),
        facts: PLAIN,
    },
    Op {
        def: "BatchToSpaceND(input: T, block_shape: Tblock_shape, crops: Tcrops) -> output: T; T: type; \
              Tblock_shape: {int32, int64} = int32; Tcrops: {int32, int64} = int32",
        shape: |query| block_shape(query, out_of_batch),
        grad: Grad::Rule(|op, dy| block_rule("SpaceToBatchND", op, dy)),
        kernel: |_| Ok(block_kernel("crops", run_out_of_batch)),
        facts: PLAIN,
    },
];

/// Pads the axes behind the first, cuts them into blocks, and moves the places inside a block into the batch.
pub fn space_to_batch_nd(input: &Output, block_shape: &Output, paddings: &Output) -> Output {
    input.scope().op("SpaceToBatchND").input(input).input(block_shape).input(paddings).output()
}

/// Undoes `space_to_batch_nd`: moves places back out of the batch, and crops.
pub fn batch_to_space_nd(input: &Output, block_shape: &Output, crops: &Output) -> Output {
    input.scope().op("BatchToSpaceND").input(input).input(block_shape).input(crops).output()
}

fn square_rule(inverse: &str, op: &Node, dy: &Output) -> Result<Grads> {
    let node = dy.scope().op(inverse).input(dy).input(&op.input(1)).attr("block_size", op.attr("block_size")?);
    Ok(grads![node.output(), NoGradient])
}

fn block_rule(inverse: &str, op: &Node, dy: &Output) -> Result<Grads> {
    let node = dy.scope().op(inverse).input(dy).input(&op.input(1)).input(&op.input(2));
    Ok(grads![node.output(), NoGradient, NoGradient])
}

/// The sizes of the batch and of the spatial axes after the op, given blocks and borders.
type Change = fn(&[i64], &[i64], &[[i64; 2]]) -> Result<Vec<i64>>;
/// Moves the elements, given blocks and borders.
type Move = fn(&Pool, Tensor, &[i64], &[[i64; 2]]) -> Result<Tensor>;

fn square_shape(query: &ShapeQuery<'_>, change: Change) -> Result<Vec<PartialShape>> {
    let AttrValue::Int(size) = query.attr("block_size")? else { return Ok(vec![PartialShape::unknown()]) };
    inferred(query, 1, Some(vec![*size; 2]), change)
}

fn block_shape(query: &ShapeQuery<'_>, change: Change) -> Result<Vec<PartialShape>> {
    let blocks = query.constants[1].as_ref().map(integers).transpose()?;
    inferred(query, 2, blocks, change)
}

fn inferred(
    query: &ShapeQuery<'_>,
    borders: usize,
    blocks: Option<Vec<i64>>,
    change: Change,
) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    let borders = query.constants[borders].as_ref().map(integers).transpose()?;
    let (Some(blocks), Some(borders)) = (blocks, borders) else {
        return Ok(vec![PartialShape::of_rank(dims.len())]);
    };
    let borders = borders.as_chunks::<2>().0;
    if borders.len() != blocks.len() || dims.len() < 1 + blocks.len() {
        return Err(invalid!("input rank should be >= {} instead of {}", 1 + blocks.len(), dims.len()));
    }
    if dims[..=blocks.len()].contains(&-1) {
        return Ok(vec![PartialShape::of_rank(dims.len())]);
    }
    Ok(vec![PartialShape::new(&change(dims, &blocks, borders)?)])
}

/// How many places a block has.
fn places(blocks: &[i64]) -> Result<i64> {
    if let Some((index, block)) = blocks.iter().enumerate().find(|(_, block)| **block < 1) {
        return Err(invalid!("All values in block_shape must be positive, got value, {block} at index {index}."));
    }
    let product = blocks.iter().try_fold(1_i64, |product, &block| product.checked_mul(block));
    product.ok_or_else(|| invalid!("Product of block sizes must be positive, got -1"))
}

fn into_batch(dims: &[i64], blocks: &[i64], paddings: &[[i64; 2]]) -> Result<Vec<i64>> {
    let mut out = dims.to_vec();
    out[0] = dims[0].checked_mul(places(blocks)?).ok_or_else(|| {
        invalid!("Negative output dimension size caused by overflow when multiplying {} and blocks", dims[0])
    })?;
    for (axis, (&block, &[before, after])) in blocks.iter().zip(paddings).enumerate() {
        if before < 0 || after < 0 {
            return Err(invalid!("Paddings must be non-negative"));
        }
        let padded = dims[axis + 1].saturating_add(before).saturating_add(after);
        if padded % block != 0 {
            return Err(invalid!("padded_shape[{axis}]={padded} is not divisible by block_shape[{axis}]={block}"));
        }
        out[axis + 1] = padded / block;
    }
    Ok(out)
}

fn out_of_batch(dims: &[i64], blocks: &[i64], crops: &[[i64; 2]]) -> Result<Vec<i64>> {
    let mut out = dims.to_vec();
    let product = blocks.iter().fold(1_i64, |product, &block| product.saturating_mul(block));
    if product <= 0 || blocks.iter().any(|&block| block < 1) {
        return Err(invalid!("Product of block sizes must be positive, got {product}"));
    }
    if dims[0] % product != 0 {
        return Err(invalid!(
            "Input batch dimension ({}) is not divisible by product of block sizes ({product})",
            dims[0]
        ));
    }
    out[0] = dims[0] / product;
    for (axis, (&block, &[before, after])) in blocks.iter().zip(crops).enumerate() {
        if before < 0 || after < 0 {
            return Err(invalid!("Crops must be non-negative"));
        }
        let cropped = dims[axis + 1].saturating_mul(block).saturating_sub(before).saturating_sub(after);
        if cropped < 0 {
            return Err(invalid!("cropped_shape[{axis}]={cropped} must be non-negative"));
        }
        out[axis + 1] = cropped;
    }
    Ok(out)
}

fn square_kernel(setup: &Setup<'_>, name: &'static str, run: Move) -> Result<Kernel> {
    let size = setup.int("block_size")?;
    if size <= 1 {
        return Err(invalid!("Block size should be > 1: {size}"));
    }
    Ok(binary(move |ctx, input, borders| {
        if input.shape().rank() != 4 {
            return Err(invalid!("Input rank should be: 4instead of: {}", input.shape().rank()));
        }
        let borders = borders_of(&borders, 2, name)?;
        run(ctx.pool(), input, &[size; 2], &borders)
    }))
}

fn block_kernel(name: &'static str, run: Move) -> Kernel {
    many(move |ctx, mut inputs| {
        let (input, blocks, borders) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        if blocks.shape().rank() != 1 {
            return Err(invalid!("block_shape rank should be 1 instead of {}", blocks.shape().rank()));
        }
        let blocks = integers(&blocks)?;
        if input.shape().rank() < 1 + blocks.len() {
            return Err(invalid!("input rank should be >= {} instead of {}", 1 + blocks.len(), input.shape().rank()));
        }
        let borders = borders_of(&borders, blocks.len(), name)?;
        Ok(outputs![run(ctx.pool(), input, &blocks, &borders)?])
    })
}

fn borders_of(borders: &Tensor, count: usize, name: &str) -> Result<Vec<[i64; 2]>> {
    if **borders.shape() != [count, 2] {
        return Err(invalid!("{name} should have shape [{count}, 2] instead of {}", borders.shape()));
    }
    Ok(integers(borders)?.as_chunks::<2>().0.to_vec())
}

/// Pads the input, reads it as `[batch, (steps, block)…, rest…]`, and moves the blocks to the front.
fn run_into_batch(pool: &Pool, input: Tensor, blocks: &[i64], paddings: &[[i64; 2]]) -> Result<Tensor> {
    let shape = Shape::checked(&into_batch(&input.shape().to_i64(), blocks, paddings)?)?;
    let (count, rank) = (blocks.len(), input.shape().rank());
    let mut around = vec![[0, 0]; rank];
    around[1..=count].copy_from_slice(paddings);
    let zero = Tensor::zeros_of(input.dtype(), Shape::scalar())?;
    let batch = input.shape()[0];
    let input = padded(pool, input, &around, &zero)?;
    let mut cut = Shape::new(&[batch]);
    for (axis, &block) in blocks.iter().enumerate() {
        cut.dims_mut().extend([shape[axis + 1], block as usize]);
    }
    cut.dims_mut().extend_from_slice(&shape[count + 1..]);
    let places = (0..count).map(|axis| 2 + 2 * axis);
    let steps = (0..count).map(|axis| 1 + 2 * axis);
    let order: Vec<usize> = places.chain([0]).chain(steps).chain(2 * count + 1..rank + count).collect();
    permuted(pool, input.reshaped(cut)?, &order)?.reshaped(shape)
}

/// Reads the input as `[(block…) batch, steps…, rest…]`, moves the blocks behind the steps, and crops.
fn run_out_of_batch(pool: &Pool, input: Tensor, blocks: &[i64], crops: &[[i64; 2]]) -> Result<Tensor> {
    let shape = Shape::checked(&out_of_batch(&input.shape().to_i64(), blocks, crops)?)?;
    let (count, rank) = (blocks.len(), input.shape().rank());
    let mut cut: Shape = blocks.iter().map(|&block| block as usize).collect();
    cut.dims_mut().push(shape[0]);
    cut.dims_mut().extend_from_slice(&input.shape()[1..]);
    let mut whole = shape.clone();
    for (axis, &block) in blocks.iter().enumerate() {
        whole.dims_mut()[axis + 1] = input.shape()[axis + 1] * block as usize;
    }
    let spatial = (0..count).flat_map(|axis| [count + 1 + axis, axis]);
    let order: Vec<usize> = [count].into_iter().chain(spatial).chain(2 * count + 1..rank + count).collect();
    let spread = permuted(pool, input.reshaped(cut)?, &order)?.reshaped(whole)?;
    let mut starts = vec![0; rank];
    for (axis, crop) in crops.iter().enumerate() {
        starts[axis + 1] = crop[0] as usize;
    }
    block(pool, spread, &starts, shape)
}
