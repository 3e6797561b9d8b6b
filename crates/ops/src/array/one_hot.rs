//! OneHot: one value at each index, another everywhere else.

use super::index::{integer, product, shape_of};
use super::nodes;
use super::units::Unit;
use graph::{AttrValue, Output};
use math::parallel::split_rows_mut;
use op::{Ctx, Grad, Inputs, Kernel, Op, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "OneHot(indices: TI, depth: int32, on_value: T, off_value: T) -> output: T; axis: int = -1; T: type; \
          TI: {uint8, int8, int32, int64} = int64",
    shape: one_hot_shape,
    grad: Grad::Stop,
    kernel: one_hot_kernel,
    facts: PLAIN,
}];

/// For each index a new last axis of `depth` elements: `on` at the index, `off` elsewhere.
pub fn one_hot(indices: &Output, depth: i32, on: &Output, off: &Output) -> Output {
    let depth = nodes::int(indices.scope(), depth);
    indices.scope().op("OneHot").input(indices).input(&depth).input(on).input(off).output()
}

fn one_hot_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(indices) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    let depth = query.constants[1].as_ref().and_then(|depth| integer(depth, || invalid!("not a scalar")).ok());
    if let Some(depth) = depth.filter(|&depth| depth < 0) {
        return Err(invalid!("Dimension size, given by scalar input 1, must be non-negative but is {depth}"));
    }
    let axis = match query.attr("axis")? {
        AttrValue::Int(axis) => *axis,
        _ => -1,
    };
    let axis = checked_axis(axis, indices.len())?;
    let mut dims = indices.to_vec();
    dims.insert(axis, depth.unwrap_or(-1));
    Ok(vec![PartialShape::new(&dims)])
}

fn checked_axis(axis: i64, rank: usize) -> Result<usize> {
    match axis {
        -1 => Ok(rank),
        _ if (0..=rank as i64).contains(&axis) => Ok(axis as usize),
        _ => Err(invalid!("Expected axis to be -1 or between [0, {}).  But received: {axis}", rank + 1)),
    }
}

fn one_hot_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let axis = setup.int("axis")?;
    Ok(many(move |ctx, inputs| Ok(outputs![run(ctx, inputs, axis)?])).heavy())
}

fn run(ctx: &Ctx<'_>, mut inputs: Inputs, axis: i64) -> Result<Tensor> {
    let (indices, depth) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let (on, off) = (inputs.tensor(2)?, inputs.tensor(3)?);
    let axis = checked_axis(axis, indices.shape().rank())?;
    let scalar = |name: &str, shape: &Shape| match shape.rank() {
        0 => Ok(()),
        _ => Err(invalid!("{name} must be a scalar, but got: {shape}")),
    };
    scalar("depth", depth.shape())?;
    scalar("on_value", on.shape())?;
    scalar("off_value", off.shape())?;
    let depth = integer(&depth, || invalid!("depth must be a scalar"))?;
    let depth = usize::try_from(depth).map_err(|_| invalid!("depth must be non-negative, got: {depth}"))?;
    let dims = indices.shape();
    if indices.elements().checked_mul(depth).is_none_or(|count| count > i64::MAX as usize) {
        return Err(invalid!("OneHot result would have shape {dims} + [{depth}], which exceeds 2**63 - 1 elements"));
    }
    let mut output = Tensor::scratch_of(on.dtype(), shape_of(&[&dims[..axis], &[depth], &dims[axis..]])?)?;
    let (places, suffix) = (places(&indices, depth)?, product(&dims[axis..]));
    for_units!(on.dtype(), E => {
        fill(ctx, E::of_mut(&mut output)?, &places, (depth, suffix), &E::of(&on)?[0], &E::of(&off)?[0]);
    });
    Ok(output)
}

/// The index where the value is on; nothing is on for an index outside.
fn places(indices: &Tensor, depth: usize) -> Result<Vec<Option<usize>>> {
    let inside = |index: i64| usize::try_from(index).ok().filter(|&index| index < depth);
    Ok(match indices.dtype() {
        DType::I32 => indices.values::<i32>()?.iter().map(|&index| inside(index.into())).collect(),
        DType::U8 => indices.values::<u8>()?.iter().map(|&index| inside(index.into())).collect(),
        DType::I8 => indices.values::<i8>()?.iter().map(|&index| inside(index.into())).collect(),
        _ => indices.values::<i64>()?.iter().map(|&index| inside(index)).collect(),
    })
}

/// Blocks of `depth x suffix` units, one for `suffix` indices.
fn fill<E: Unit>(
    ctx: &Ctx<'_>,
    output: &mut [E],
    places: &[Option<usize>],
    (depth, suffix): (usize, usize),
    on: &E,
    off: &E,
) {
    let block = depth * suffix;
    if output.is_empty() {
        return;
    }
    let cost = 4.0 + (block * size_of::<E>()) as f32 / 16.0 + suffix as f32;
    split_rows_mut(ctx.pool(), cost, output, block, |first, blocks| {
        for (block, places) in blocks.chunks_exact_mut(block).zip(places[first * suffix..].chunks_exact(suffix)) {
            block.fill(off.clone());
            for (column, place) in places.iter().enumerate() {
                if let Some(place) = place {
                    block[place * suffix + column] = on.clone();
                }
            }
        }
    });
}
