//! The largest numbers of each row where equal ones count once, and order statistics.

use crate::array::index::product;
use graph::{AttrValue, ShapeQuery};
use op::{Grad, Kernel, Op, Outputs, PLAIN, Setup, many, outputs, unary};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "TopKUnique(input: float) -> topk: float, topk_indices: int32; k: int",
        shape: top_shape,
        grad: Grad::Stop,
        kernel: |setup| top_kernel(setup, false),
        facts: PLAIN,
    },
    Op {
        def: "TopKWithUnique(input: float) -> topk: float, topk_indices: int32; k: int",
        shape: top_shape,
        grad: Grad::Stop,
        kernel: |setup| top_kernel(setup, true),
        facts: PLAIN,
    },
    Op {
        def: "MakeUnique(input: float) -> output: float",
        shape: |query| Ok(vec![query.inputs[0].merge(&PartialShape::of_rank(2))?]),
        grad: Grad::Stop,
        kernel: unique_kernel,
        facts: PLAIN,
    },
    Op {
        def: "KthOrderStatistic(input: float) -> output: float; k: int",
        shape: statistic_shape,
        grad: Grad::Stop,
        kernel: statistic_kernel,
        facts: PLAIN,
    },
];

fn top_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let input = query.inputs[0].merge(&PartialShape::of_rank(2))?;
    let k = match query.attr("k") {
        Ok(AttrValue::Int(k)) => *k,
        _ => -1,
    };
    Ok(vec![PartialShape::new(&[input.dim(0).map_or(-1, |rows| rows as i64), k]); 2])
}

fn statistic_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    match query.inputs[0].dims() {
        None => Ok(vec![PartialShape::unknown()]),
        Some([outer @ .., _]) => Ok(vec![PartialShape::new(outer)]),
        Some([]) => Err(invalid!("Shape must be at least rank 1 but is rank 0")),
    }
}

/// Attribute `k`, at least 1.
fn count(setup: &Setup<'_>) -> Result<usize> {
    let k = setup.int("k")?;
    usize::try_from(k).ok().filter(|&k| k > 0).ok_or_else(|| invalid!("k must be positive, got {k}"))
}

fn matrix(input: &Tensor) -> Result<[usize; 2]> {
    match input.shape().dims() {
        &[rows, columns] => Ok([rows, columns]),
        _ => Err(invalid!("input must be a matrix, got shape {}", input.shape())),
    }
}

fn top_kernel(setup: &Setup<'_>, make_unique: bool) -> Result<Kernel> {
    let k = count(setup)?;
    Ok(many(move |_, mut inputs| {
        let mut input = inputs.tensor(0)?;
        let [_, columns] = matrix(&input)?;
        if make_unique {
            uniques(columns, input.values_mut()?);
        }
        top(k, &input)
    })
    .heavy())
}

/// The `k` largest numbers of each row and the last place of each, filled up with negative infinity at place -1.
fn top(k: usize, input: &Tensor) -> Result<Outputs> {
    let [rows, columns] = matrix(input)?;
    let shape = Shape::checked(&[rows as i64, k as i64])?;
    let (mut values, mut places) = (Tensor::scratch::<f32>(&shape)?, Tensor::scratch::<i32>(&shape)?);
    let results = values.values_mut::<f32>()?.chunks_exact_mut(k).zip(places.values_mut::<i32>()?.chunks_exact_mut(k));
    for (row, (values, places)) in results.enumerate() {
        values.fill(f32::NEG_INFINITY);
        places.fill(-1);
        let row = &input.values::<f32>()?[row * columns..][..columns];
        let found = sorted_uniques(row);
        for ((value, place), (found, at)) in values.iter_mut().zip(places.iter_mut()).zip(&found) {
            (*value, *place) = (*found, *at);
        }
        if let Some(&(f32::NEG_INFINITY, last)) = found.last() {
            places.iter_mut().skip(found.len()).for_each(|place| *place = last);
        }
    }
    Ok(outputs![values, places])
}

/// The numbers of a row from the largest on, each once with its last place. Subnormal numbers are zero.
fn sorted_uniques(row: &[f32]) -> Vec<(f32, i32)> {
    let normal = |value: f32| if value.is_subnormal() || value == 0.0 { 0.0 } else { value };
    let numbers = row.iter().zip(0..).filter(|(value, _)| !value.is_nan());
    let mut all: Vec<(f32, i32)> = numbers.map(|(&value, place)| (normal(value), place)).collect();
    all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    all.dedup_by(|later, first| later.0 == first.0);
    all
}

fn unique_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, mut input| {
        let [_, columns] = matrix(&input)?;
        uniques(columns, input.values_mut()?);
        Ok(input)
    }))
}

/// Replaces the lowest bits of each number by its column, and zeros by the smallest normal number before.
fn uniques(columns: usize, values: &mut [f32]) {
    let low = (columns.max(1).next_power_of_two() - 1) as u32;
    for row in values.chunks_exact_mut(columns.max(1)) {
        for (value, column) in row.iter_mut().zip(0..) {
            let normal = if *value == 0.0 { f32::MIN_POSITIVE.copysign(*value) } else { *value };
            *value = f32::from_bits(normal.to_bits() & !low | column);
        }
    }
}

fn statistic_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let k = count(setup)?;
    Ok(unary(move |_, input| {
        let [outer @ .., columns] = input.shape().dims() else {
            return Err(invalid!("input must be at least rank 1 but is rank 0"));
        };
        if k > *columns {
            return Err(invalid!("input must have last dimension >= k = {k} but is {columns}"));
        }
        let largest = |row: &[f32]| {
            let mut row = row.to_vec();
            *row.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1
        };
        let rows = input.values::<f32>()?.chunks_exact(*columns).take(product(outer));
        Tensor::from_slice(outer, &rows.map(largest).collect::<Vec<_>>())
    })
    .heavy())
}
