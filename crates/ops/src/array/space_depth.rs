//! Moves blocks of an image to its channels, and back: SpaceToDepth, DepthToSpace.

use super::transpose::permuted;
use graph::{AttrValue, Node, Output, ShapeQuery};
use math::Pool;
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, grads, unary};
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SpaceToDepth(input: T) -> output: T; T: type; block_size: int >= 2; \
              data_format: {\"NHWC\", \"NCHW\", \"NCHW_VECT_C\"} = \"NHWC\"",
        shape: space_to_depth_shape,
        grad: Grad::Rule(|op, dy| moved_back("DepthToSpace", op, dy)),
        kernel: space_to_depth_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DepthToSpace(input: T) -> output: T; T: type; block_size: int >= 2; \
              data_format: {\"NHWC\", \"NCHW\", \"NCHW_VECT_C\"} = \"NHWC\"",
        shape: depth_to_space_shape,
        grad: Grad::Rule(|op, dy| moved_back("SpaceToDepth", op, dy)),
        kernel: depth_to_space_kernel,
        facts: PLAIN,
    },
];

/// Each square of `block` by `block` pixels becomes one pixel with `block` squared times as many channels.
pub fn space_to_depth(input: &Output, block: i64) -> Output {
    input.scope().op("SpaceToDepth").input(input).attr("block_size", block).output()
}

/// The inverse of `space_to_depth`.
pub fn depth_to_space(input: &Output, block: i64) -> Output {
    input.scope().op("DepthToSpace").input(input).attr("block_size", block).output()
}

fn moved_back(inverse: &str, op: &Node, dy: &Output) -> Result<Grads> {
    let node = dy.scope().op(inverse).input(dy).attr("block_size", op.attr("block_size")?);
    Ok(grads![node.attr("data_format", op.attr("data_format")?).output()])
}

fn space_to_depth_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    image_shape(query, |[height, width, depth], block| {
        let odd = |dim: i64| dim >= 0 && dim % block != 0;
        if odd(height) || odd(width) {
            return Err(indivisible(height, width, block));
        }
        let cut = |dim: i64| if dim < 0 { -1 } else { dim / block };
        Ok([cut(height), cut(width), if depth < 0 { -1 } else { depth.saturating_mul(block * block) }])
    })
}

fn depth_to_space_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    image_shape(query, |[height, width, depth], block| {
        if depth >= 0 && depth % (block * block) != 0 {
            return Err(invalid!("Input depth dimension {depth} should be divisible by: {}", block * block));
        }
        let spread = |dim: i64| if dim < 0 { -1 } else { dim.saturating_mul(block) };
        Ok([spread(height), spread(width), if depth < 0 { -1 } else { depth / (block * block) }])
    })
}

/// The shape of a batch of images, given a function of height, width and depth. The shape is only known if the
/// channels are the last axis.
fn image_shape(
    query: &ShapeQuery<'_>,
    change: impl Fn([i64; 3], i64) -> Result<[i64; 3]>,
) -> Result<Vec<PartialShape>> {
    let (AttrValue::Int(block), AttrValue::String(format)) = (query.attr("block_size")?, query.attr("data_format")?)
    else {
        return Ok(vec![PartialShape::unknown()]);
    };
    match query.inputs[0].dims() {
        Some(&[batch, height, width, depth]) if &format[..] == b"NHWC" && (2..1 << 15).contains(block) => {
            let [height, width, depth] = change([height, width, depth], *block)?;
            Ok(vec![PartialShape::new(&[batch, height, width, depth])])
        }
        Some(dims) if &format[..] == b"NHWC" && dims.len() != 4 => {
            Err(invalid!("Shape must be rank 4 but is rank {}", dims.len()))
        }
        Some(dims) => Ok(vec![PartialShape::of_rank(dims.len())]),
        None => Ok(vec![PartialShape::unknown()]),
    }
}

fn indivisible(height: i64, width: i64, block: i64) -> status::Error {
    invalid!("Image width {width} and height {height} should be divisible by block_size: {block}")
}

/// Larger blocks would overflow their square.
const MAX_BLOCK: i64 = 46340;

fn block_of(setup: &Setup<'_>) -> Result<usize> {
    let (block, format) = (setup.int("block_size")?, setup.string("data_format")?);
    if !(2..=MAX_BLOCK).contains(&block) {
        return Err(invalid!("Block size should be > 1 and <= {MAX_BLOCK} but was: {block}"));
    }
    if format != "NHWC" {
        return Err(setup.no_kernel());
    }
    Ok(block as usize)
}

fn space_to_depth_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let block = block_of(setup)?;
    Ok(unary(move |ctx, input| run_space_to_depth(ctx.pool(), input, block)))
}

fn run_space_to_depth(pool: &Pool, input: Tensor, block: usize) -> Result<Tensor> {
    let &[batch, height, width, depth] = input.shape().dims() else {
        return Err(invalid!("Input rank should be 4 instead of {}", input.shape().rank()));
    };
    if !height.is_multiple_of(block) || !width.is_multiple_of(block) {
        return Err(indivisible(height as i64, width as i64, block as i64));
    }
    let (rows, columns) = (height / block, width / block);
    let blocks = input.reshaped([batch, rows, block, columns, block, depth])?;
    let moved = permuted(pool, blocks, &[0, 1, 3, 2, 4, 5])?;
    moved.reshaped([batch, rows, columns, block * block * depth])
}

fn depth_to_space_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let block = block_of(setup)?;
    Ok(unary(move |ctx, input| run_depth_to_space(ctx.pool(), input, block)))
}

fn run_depth_to_space(pool: &Pool, input: Tensor, block: usize) -> Result<Tensor> {
    let &[batch, height, width, depth] = input.shape().dims() else {
        return Err(invalid!("Input rank should be: 4 instead of: {}", input.shape().rank()));
    };
    let square = block * block;
    if !depth.is_multiple_of(square) {
        return Err(invalid!("Input depth dimension {depth} should be divisible by: {square}"));
    }
    let blocks = input.reshaped([batch, height, width, block, block, depth / square])?;
    let moved = permuted(pool, blocks, &[0, 1, 3, 2, 4, 5])?;
    moved.reshaped([batch, height * block, width * block, depth / square])
}
