//! DenseCountSparseOutput and related ops count how often each number occurs in each row, as a sparse tensor.

use super::bincount::checked_splits;
use super::numbers::Summed;
use op::{Grad, Inputs, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use std::collections::BTreeMap;
use tensor::{PartialShape, Tensor};

macro_rules! row {
    ($def:literal, $run:ident) => {
        Op {
            def: $def,
            shape: count_shape,
            grad: Grad::Stop,
            kernel: |setup| {
                let limits = Limits::of(setup)?;
                for_types!(setup, setup.dtype("output_type")?, [i32, i64, f32, f64], T => {
                    Ok(many(move |_, inputs| $run::<T>(inputs, limits)))
                })
            }, facts: PLAIN }
    };
}

pub(crate) const OPS: &[Op] = &[
    row!(
        "DenseCountSparseOutput(values: T, weights: output_type) -> output_indices: int64, output_values: output_type, \
         output_dense_shape: int64; T: {int32, int64}; minlength: int >= -1 = -1; maxlength: int >= -1 = -1; \
         binary_output: bool; output_type: {int32, int64, float, double}",
        run_dense
    ),
    row!(
        "SparseCountSparseOutput(indices: int64, values: T, dense_shape: int64, weights: output_type) -> \
         output_indices: int64, output_values: output_type, output_dense_shape: int64; T: {int32, int64}; \
         minlength: int >= -1 = -1; maxlength: int >= -1 = -1; binary_output: bool; output_type: {int32, int64, float, double}",
        run_sparse
    ),
    row!(
        "RaggedCountSparseOutput(splits: int64, values: T, weights: output_type) -> output_indices: int64, \
         output_values: output_type, output_dense_shape: int64; T: {int32, int64}; minlength: int >= -1 = -1; \
         maxlength: int >= -1 = -1; binary_output: bool; output_type: {int32, int64, float, double}",
        run_ragged
    ),
];

fn count_shape(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(2), PartialShape::of_rank(1), PartialShape::of_rank(1)])
}

/// Reads the attributes of a node.
#[derive(Clone, Copy)]
struct Limits {
    min: i64,
    max: i64,
    binary: bool,
}

impl Limits {
    fn of(setup: &Setup<'_>) -> Result<Limits> {
        let (min, max) = (setup.int("minlength")?, setup.int("maxlength")?);
        Ok(Limits { min, max, binary: setup.bool("binary_output")? })
    }
}

/// Counts by row and number; rows are few, numbers may be large.
struct Counts<'a, T> {
    weights: &'a [T],
    limits: Limits,
    found: BTreeMap<(usize, i64), T>,
    highest: i64,
}

impl<'a, T: Summed> Counts<'a, T> {
    fn new(numbers: &[i64], weights: &'a [T], limits: Limits) -> Result<Counts<'a, T>> {
        match numbers.iter().all(|&number| number >= 0) {
            true => Ok(Counts { weights, limits, found: BTreeMap::new(), highest: 0 }),
            false => Err(invalid!("Input values must all be non-negative")),
        }
    }

    fn count(&mut self, row: usize, place: usize, number: i64) {
        if self.limits.max >= 0 && number >= self.limits.max {
            return;
        }
        let count = self.found.entry((row, number)).or_insert(T::ZERO);
        *count = match self.weights.get(place) {
            _ if self.limits.binary => T::ONE,
            Some(&weight) => count.add(weight),
            None => count.add(T::ONE),
        };
        self.highest = self.highest.max(number);
    }

    /// `rows` is none if there is one row without an axis for it.
    fn finish(self, rows: Option<usize>) -> Result<Outputs> {
        let width = match self.limits.max {
            max if max >= 0 => max,
            _ => self.highest.saturating_add(1).max(self.limits.min),
        };
        let rank = if rows.is_some() { 2 } else { 1 };
        let row = |key: &(usize, i64)| [key.0 as i64, key.1].into_iter().skip(2 - rank);
        let indices: Vec<i64> = self.found.keys().flat_map(row).collect();
        let values: Vec<T> = self.found.into_values().collect();
        let shape: Vec<i64> = rows.map(|rows| rows as i64).into_iter().chain([width]).collect();
        let indices = Tensor::from_slice([values.len(), rank], &indices)?;
        Ok(outputs![indices, Tensor::vector(&values), Tensor::vector(&shape)])
    }
}

fn check_weights(weights: &Tensor, values: &Tensor, name: &str) -> Result<()> {
    if weights.elements() > 0 && weights.shape() != values.shape() {
        return Err(invalid!(
            "Weights and {name} must have the same shape. Weight shape: {}; {name} shape: {}",
            weights.shape(),
            values.shape()
        ));
    }
    Ok(())
}

fn run_dense<T: Summed>(mut inputs: Inputs, limits: Limits) -> Result<Outputs> {
    let (values, weights) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let (rows, width) = match *values.shape().dims() {
        [width] => (None, width),
        [rows, width] => (Some(rows), width),
        _ => return Err(invalid!("Input must be a 1 or 2-dimensional tensor. Got: {}", values.shape())),
    };
    let numbers = op::shapes::integers(&values)?;
    let mut counts = Counts::<T>::new(&numbers, weights.values()?, limits)?;
    check_weights(&weights, &values, "data")?;
    if rows == Some(0) {
        return Err(invalid!("Invalid input: Shapes dimension cannot be 0."));
    }
    for (place, &number) in numbers.iter().enumerate() {
        counts.count(place / width, place, number);
    }
    counts.finish(rows)
}

fn run_sparse<T: Summed>(mut inputs: Inputs, limits: Limits) -> Result<Outputs> {
    let (indices, values, shape) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let weights = inputs.tensor(3)?;
    let rank = check_sparse(&indices, &values, &shape)?;
    let (all, dims) = (indices.values::<i64>()?, shape.values::<i64>()?);
    for (place, &at) in all.iter().enumerate() {
        let (number, axis) = (place / rank, place % rank);
        if at < 0 || at >= dims[axis] {
            return Err(invalid!(
                "Invalid index value at {number}: dimension {axis} has value {at} which is not in [0, {}) (as given by \
                 dense shape {:?}",
                dims[axis],
                dims
            ));
        }
    }
    let numbers = op::shapes::integers(&values)?;
    let mut counts = Counts::<T>::new(&numbers, weights.values()?, limits)?;
    check_weights(&weights, &values, "values")?;
    let rows = if rank == 1 { 1 } else { dims[0] };
    if !(1..i64::from(i32::MAX)).contains(&rows) {
        return Err(invalid!("Cannot allocate {rows} batches, is the dense shape too wide?"));
    }
    for (place, &number) in numbers.iter().enumerate() {
        let row = if rank == 1 { 0 } else { all[place * rank] };
        counts.count(row as usize, place, number);
    }
    counts.finish((rank > 1).then_some(rows as usize))
}

fn check_sparse(indices: &Tensor, values: &Tensor, shape: &Tensor) -> Result<usize> {
    let &[count, rank] = indices.shape().dims() else {
        return Err(invalid!("Input indices must be a 2-dimensional tensor. Got: {}", indices.shape()));
    };
    if values.shape().rank() != 1 {
        return Err(invalid!("Input values must be a vector. Got: {}", values.shape()));
    }
    if shape.shape().rank() != 1 {
        return Err(invalid!("Input shape must be a vector. Got: {}", shape.shape()));
    }
    if values.elements() != count {
        return Err(invalid!(
            "Number of values must match first dimension of indices.Got {} values, indices shape: {}",
            values.elements(),
            indices.shape()
        ));
    }
    if shape.elements() != rank {
        return Err(invalid!(
            "Number of dimensions must match second dimension of indices.Got {} dimensions, indices shape: {}",
            shape.elements(),
            indices.shape()
        ));
    }
    if rank == 0 {
        return Err(invalid!("The shape argument requires at least one element."));
    }
    Ok(rank)
}

fn run_ragged<T: Summed>(mut inputs: Inputs, limits: Limits) -> Result<Outputs> {
    let (splits, values, weights) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    check_weights(&weights, &values, "values")?;
    if splits.elements() < 2 {
        return Err(invalid!("Must provide at least 2 elements for the splits argument"));
    }
    let numbers = op::shapes::integers(&values)?;
    let rows = checked_splits(splits.values::<i64>()?, numbers.len())?;
    let mut counts = Counts::<T>::new(&numbers, weights.values()?, limits)?;
    let count = rows.len();
    for (row, range) in rows.into_iter().enumerate() {
        range.for_each(|place| counts.count(row, place, numbers[place]));
    }
    counts.finish(Some(count))
}
