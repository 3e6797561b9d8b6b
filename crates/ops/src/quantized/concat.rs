//! QuantizedConcat.

use super::args::{ranged, with_range};
use super::level::{Decoder, Encoder, Level, Range};
use crate::array::args::to_integer;
use crate::array::concat::{joined, joined_shape};
use graph::ShapeQuery;
use op::{Ctx, Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, many};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "QuantizedConcat(concat_dim: int32, values: N * T, input_mins: N * float, input_maxes: N * float) -> \
              output: T, output_min: float, output_max: float; N: int >= 2; T: type",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let count = query.inputs.len() / 3;
    Ok(ranged(joined_shape(&query.inputs[1..=count], query.constants[0].as_ref())?.swap_remove(0)))
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("T")?;
    for_levels!(setup, dtype, [QU8 = u8, QI32 = i32], T => Ok(many(move |ctx, mut inputs| {
        let axis = inputs.tensor(0)?;
        let count = inputs.len() / 3;
        let values = inputs.tensors(1, count)?;
        run::<T>(ctx, dtype, &axis, values, &ranges(&inputs, count)?)
    })))
}

/// The ranges of all values; their smallest numbers come first, then their largest.
fn ranges(inputs: &Inputs, count: usize) -> Result<Vec<Range>> {
    let bound = |name: &str, first: usize, index: usize| -> Result<f32> {
        let tensor = inputs.look(first + index)?;
        match *tensor.values::<f32>()? {
            [value] => Ok(value),
            _ => Err(invalid!(
                "{name} each tensor's num elements must be 1, given num elements {} in index {index}",
                tensor.elements()
            )),
        }
    };
    let range = |index: usize| {
        let min = bound("input_mins", count + 1, index)?;
        Ok(Range { min, max: bound("input_maxes", 2 * count + 1, index)? })
    };
    (0..count).map(range).collect()
}

fn run<T: Level>(
    ctx: &Ctx<'_>,
    dtype: DType,
    axis: &Tensor,
    mut values: Vec<Tensor>,
    ranges: &[Range],
) -> Result<Outputs> {
    if axis.shape().rank() != 0 {
        return Err(invalid!("Concat dim tensor should be a scalar integer, but got shape {}", axis.shape()));
    }
    let asked = to_integer(axis)?;
    let mut shape = values.first().map_or(Shape::scalar(), |value| value.shape().clone());
    let rank = shape.rank();
    let Some(axis) = usize::try_from(asked).ok().filter(|&axis| axis < rank) else {
        return Err(invalid!("ConcatOp : Expected concatenating dimensions in the range [0, {rank}), but got {asked}"));
    };
    let to = common_range::<T>(ranges);
    let mut total = 0_usize;
    for (index, value) in values.iter().enumerate() {
        check_joins(&shape, value.shape(), index, axis)?;
        total = total.saturating_add(value.shape()[axis]);
    }
    shape.dims_mut()[axis] = total;
    // As in TensorFlow, the ranges are counted without the empty values.
    values.retain(|value| value.elements() > 0);
    for (value, &range) in values.iter_mut().zip(ranges) {
        moved::<T>(value, range, to)?;
    }
    Ok(with_range(joined(ctx.pool(), dtype, shape, axis, &values)?, to))
}

fn check_joins(first: &Shape, other: &Shape, index: usize, axis: usize) -> Result<()> {
    if other.rank() != first.rank() {
        return Err(invalid!(
            "ConcatOp : Ranks of all input tensors should match: shape[0] = {first} vs. shape[{index}] = {other}"
        ));
    }
    match (0..first.rank()).all(|dim| dim == axis || first[dim] == other[dim]) {
        true => Ok(()),
        false => Err(invalid!(
            "ConcatOp : Dimensions of inputs should match: shape[0] = {first} vs. shape[{index}] = {other}"
        )),
    }
}

/// The smallest range that contains all ranges and zero; symmetric for signed integers.
fn common_range<T: Level>(ranges: &[Range]) -> Range {
    let min = ranges.iter().fold(f32::MAX, |min, range| if range.min < min { range.min } else { min });
    let max = ranges.iter().fold(f32::MIN, |max, range| if range.max > max { range.max } else { max });
    let min = if min < 0.0 { min } else { 0.0 };
    match T::LOWEST < 0 {
        true => Range::symmetric(super::per_channel::magnitude(min, max)),
        false => Range { min, max },
    }
}

/// Moves integers to another range, in place.
fn moved<T: Level>(value: &mut Tensor, from: Range, to: Range) -> Result<()> {
    if from != to {
        let (decoder, encoder) = (Decoder::<T>::new(from), Encoder::<T>::new(to));
        value.values_mut::<T>()?.iter_mut().for_each(|value| *value = encoder.quantized(decoder.real(*value)));
    }
    Ok(())
}
