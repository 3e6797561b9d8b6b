//! Bincount, DenseBincount, SparseBincount, RaggedBincount: counts how often, or with what weight, each number occurs.

use super::index::{integer, shape_of};
use super::numbers::Summed;
use crate::sparse::coo::Coo;
use graph::Output;
use math::parallel::split_rows_mut;
use op::{Ctx, Grad, Inputs, Op, Outputs, PLAIN, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

macro_rules! row {
    ($def:literal, $shape:expr, $run:ident) => {
        Op {
            def: $def,
            shape: $shape,
            grad: Grad::Stop,
            kernel: |setup| {
                let binary = setup.find("binary_output").is_some() && setup.bool("binary_output")?;
                for_types!(setup, setup.dtype("T")?, [i32, i64, f32, f64], T => {
                    Ok(many(move |ctx, inputs| $run::<T>(ctx, inputs, binary)).heavy())
                })
            }, facts: PLAIN }
    };
}

pub(crate) const OPS: &[Op] = &[
    row!(
        "Bincount(arr: int32, size: int32, weights: T) -> bins: T; T: {int32, int64, float, double}",
        |query| bins_shape(query, 1, false),
        run_flat
    ),
    row!(
        "DenseBincount(input: Tidx, size: Tidx, weights: T) -> output: T; Tidx: {int32, int64}; \
         T: {int32, int64, float, double}; binary_output: bool = false",
        |query| bins_shape(query, 1, query.inputs[0].rank() == Some(2)),
        run_dense
    ),
    row!(
        "SparseBincount(indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T) -> output: T; \
         Tidx: {int32, int64}; T: {int32, int64, float, double}; binary_output: bool = false",
        |_| Ok(vec![PartialShape::unknown()]),
        run_sparse
    ),
    row!(
        "RaggedBincount(splits: int64, values: Tidx, size: Tidx, weights: T) -> output: T; Tidx: {int32, int64}; \
         T: {int32, int64, float, double}; binary_output: bool = false",
        |query| bins_shape(query, 2, true),
        run_ragged
    ),
];

/// How often each number below `size` occurs in `values`, or the sum of its `weights` if there are any.
pub fn bincount(values: &Output, size: &Output, weights: &Output) -> Output {
    values.scope().op("Bincount").input(values).input(size).input(weights).output()
}

fn bins_shape(query: &ShapeQuery<'_>, size: usize, rows: bool) -> Result<Vec<PartialShape>> {
    if query.inputs[0].rank().is_none() && query.def.op == "DenseBincount" {
        return Ok(vec![PartialShape::unknown()]);
    }
    let size = query.constants[size].as_ref().and_then(|size| integer(size, || invalid!("not a scalar")).ok());
    if let Some(size) = size.filter(|&size| size < 0) {
        return Err(invalid!("size ({size}) must be non-negative"));
    }
    let first = query.inputs[0].dims().and_then(|dims| dims.first().copied()).unwrap_or(-1);
    let first = if query.def.op == "RaggedBincount" && first > 0 { first - 1 } else { first };
    let dims = [first, size.unwrap_or(-1)];
    Ok(vec![PartialShape::new(if rows { &dims } else { &dims[1..] })])
}

fn checked_size(size: &Tensor) -> Result<usize> {
    let count = integer(size, || invalid!("Shape must be rank 0 but is rank {}", size.shape().rank()))?;
    usize::try_from(count).map_err(|_| invalid!("size ({count}) must be non-negative"))
}

/// The input of a count: numbers, and the weight of each if there are any.
struct Counted<'a, T> {
    numbers: &'a [i64],
    weights: &'a [T],
    binary: bool,
}

impl<T: Summed> Counted<'_, T> {
    /// Counts element `place` in `bins`; a number beyond them is not counted.
    #[inline]
    fn count(&self, place: usize, bins: &mut [T]) {
        let number = usize::try_from(self.numbers[place]).ok();
        if let Some(bin) = number.and_then(|number| bins.get_mut(number)) {
            *bin = match self.weights.get(place) {
                _ if self.binary => T::ONE,
                Some(&weight) => bin.add(weight),
                None => bin.add(T::ONE),
            };
        }
    }

    fn flat(&self, size: usize) -> Result<Tensor> {
        if self.numbers.iter().any(|&number| number < 0) {
            return Err(invalid!("Input arr must be non-negative!"));
        }
        if !self.binary && !self.weights.is_empty() && self.weights.len() != self.numbers.len() {
            return Err(invalid!("Input indices and weights must have the same size."));
        }
        let mut bins = Tensor::zeros::<T>([size])?;
        let counts = bins.values_mut::<T>()?;
        (0..self.numbers.len()).for_each(|place| self.count(place, counts));
        Ok(bins)
    }
}

fn run_flat<T: Summed>(_: &Ctx<'_>, mut inputs: Inputs, binary: bool) -> Result<Outputs> {
    let (values, size, weights) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let size = checked_size(&size)?;
    let numbers = op::shapes::integers(&values)?;
    Ok(outputs![Counted::<T> { numbers: &numbers, weights: weights.values()?, binary }.flat(size)?])
}

fn run_dense<T: Summed>(ctx: &Ctx<'_>, mut inputs: Inputs, binary: bool) -> Result<Outputs> {
    let (values, size, weights) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let rank = values.shape().rank();
    if rank > 2 {
        return Err(invalid!("Shape must be at most rank 2 but is rank {rank}"));
    }
    if size.shape().rank() != 0 {
        return Err(invalid!("Shape must be rank 0 but is rank {}", size.shape().rank()));
    }
    if weights.elements() > 0 && weights.shape() != values.shape() {
        return Err(invalid!(
            "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all weights equal \
             to 1. Received {}",
            weights.shape()
        ));
    }
    let size = checked_size(&size)?;
    let numbers = op::shapes::integers(&values)?;
    let counted = Counted::<T> { numbers: &numbers, weights: weights.values()?, binary };
    let &[rows, width] = values.shape().dims() else { return Ok(outputs![counted.flat(size)?]) };
    if let Some(&negative) = numbers.iter().rfind(|&&number| number < 0) {
        return Err(invalid!("Input 'in' must be non-negative! Negative input value found: {negative}"));
    }
    let mut bins = Tensor::zeros::<T>(shape_of(&[&[rows, size]])?)?;
    if size > 0 {
        split_rows_mut(ctx.pool(), 4.0 + 2.0 * width as f32, bins.values_mut::<T>()?, size, |first, part| {
            for (row, bins) in part.chunks_exact_mut(size).enumerate() {
                let start = (first + row) * width;
                (start..start + width).for_each(|place| counted.count(place, bins));
            }
        });
    }
    Ok(outputs![bins])
}

fn run_sparse<T: Summed>(_: &Ctx<'_>, mut inputs: Inputs, binary: bool) -> Result<Outputs> {
    let (indices, values, shape) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let (size, weights) = (checked_size(&inputs.tensor(3)?)?, inputs.tensor(4)?);
    let coo = Coo::new(&indices, &values, &shape)?;
    coo.check_inside()?;
    let numbers = op::shapes::integers(&values)?;
    let counted = Counted::<T> { numbers: &numbers, weights: weights.values()?, binary };
    let [rows, _, ..] = coo.dims else { return Ok(outputs![counted.flat(size)?]) };
    let mut bins = Tensor::zeros::<T>(Shape::checked(&[*rows, size as i64])?)?;
    let counts = bins.values_mut::<T>()?;
    for (place, index) in coo.each_index().enumerate() {
        counted.count(place, &mut counts[index[0] as usize * size..][..size]);
    }
    Ok(outputs![bins])
}

fn run_ragged<T: Summed>(_: &Ctx<'_>, mut inputs: Inputs, binary: bool) -> Result<Outputs> {
    let (splits, values) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let (size, weights) = (checked_size(&inputs.tensor(2)?)?, inputs.tensor(3)?);
    let numbers = op::shapes::integers(&values)?;
    let rows = checked_splits(splits.values::<i64>()?, numbers.len())?;
    let counted = Counted::<T> { numbers: &numbers, weights: weights.values()?, binary };
    if numbers.iter().any(|&number| number < 0) {
        return Err(invalid!("Input must be non-negative"));
    }
    let mut bins = Tensor::zeros::<T>(shape_of(&[&[rows.len(), size]])?)?;
    let counts = bins.values_mut::<T>()?;
    for (row, range) in rows.into_iter().enumerate() {
        range.for_each(|place| counted.count(place, &mut counts[row * size..][..size]));
    }
    Ok(outputs![bins])
}

/// The rows that splits cut `count` values into.
pub(super) fn checked_splits(splits: &[i64], count: usize) -> Result<Vec<std::ops::Range<usize>>> {
    let (Some(&first), Some(&last)) = (splits.first(), splits.last()) else {
        return Err(invalid!("Splits must be non-empty"));
    };
    if first != 0 {
        return Err(invalid!("Splits must start with 0, not with {first}"));
    }
    if last != count as i64 {
        return Err(invalid!("Splits must end with the number of values, got {last} instead of {count}"));
    }
    if splits.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(invalid!("Splits must not fall"));
    }
    Ok(splits.windows(2).map(|pair| pair[0] as usize..pair[1] as usize).collect())
}
