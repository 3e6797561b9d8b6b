//! SegmentSum, Mean, Prod, Max, Min: reduces the rows with equal ids, where ids are ascending.

use super::gather::gather;
use super::index::{Index, integer, product, shape_of};
use super::nodes;
use super::numbers::{Bounded, Summed};
use graph::{Node, Output};
use math::function::{Number, Ordered};
use math::parallel::split_rows_mut;
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use std::ops::Range;
use tensor::{Complex32, Complex64, DType, Element, PartialShape, Tensor};

macro_rules! row {
    ($def:literal, $rule:expr, $kernel:expr) => {
        Op { def: $def, shape: segment_shape, grad: $rule, kernel: $kernel, facts: PLAIN }
    };
}

pub(crate) const OPS: &[Op] = &[
    row!(
        "SegmentSum(data: T, segment_ids: Tindices) -> output: T; T: numbertype; Tindices: {int32, int64}",
        Grad::Rule(sum_rule),
        sum_kernel
    ),
    row!(
        "SegmentMean(data: T, segment_ids: Tindices) -> output: T; T: numbertype; Tindices: {int32, int64}",
        Grad::Rule(mean_rule),
        mean_kernel
    ),
    row!(
        "SegmentProd(data: T, segment_ids: Tindices) -> output: T; T: numbertype; Tindices: {int32, int64}",
        Grad::Rule(prod_rule),
        prod_kernel
    ),
    row!(
        "SegmentMax(data: T, segment_ids: Tindices) -> output: T; T: realnumbertype; Tindices: {int32, int64}",
        Grad::Rule(extreme_rule),
        max_kernel
    ),
    row!(
        "SegmentMin(data: T, segment_ids: Tindices) -> output: T; T: realnumbertype; Tindices: {int32, int64}",
        Grad::Rule(extreme_rule),
        min_kernel
    ),
    row!(
        "SegmentSumV2(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T; T: numbertype; \
         Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32",
        Grad::Unknown,
        sum_kernel
    ),
    row!(
        "SegmentProdV2(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T; T: numbertype; \
         Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32",
        Grad::Unknown,
        prod_kernel
    ),
    row!(
        "SegmentMaxV2(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T; T: realnumbertype; \
         Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32",
        Grad::Unknown,
        max_kernel
    ),
    row!(
        "SegmentMinV2(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T; T: realnumbertype; \
         Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32",
        Grad::Unknown,
        min_kernel
    ),
];

/// The sum of the rows with each id; ids rise.
pub fn segment_sum(data: &Output, segment_ids: &Output) -> Output {
    nodes::pair("SegmentSum", data, segment_ids)
}

/// The mean of the rows with each id; ids rise.
pub fn segment_mean(data: &Output, segment_ids: &Output) -> Output {
    nodes::pair("SegmentMean", data, segment_ids)
}

/// The product of the rows with each id; ids rise.
pub fn segment_prod(data: &Output, segment_ids: &Output) -> Output {
    nodes::pair("SegmentProd", data, segment_ids)
}

/// The largest of the rows with each id; ids rise.
pub fn segment_max(data: &Output, segment_ids: &Output) -> Output {
    nodes::pair("SegmentMax", data, segment_ids)
}

/// The smallest of the rows with each id; ids rise.
pub fn segment_min(data: &Output, segment_ids: &Output) -> Output {
    nodes::pair("SegmentMin", data, segment_ids)
}

fn segment_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    query.inputs[1].merge(&PartialShape::of_rank(1))?;
    let Some(data) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    if data.is_empty() {
        return Err(invalid!("Shape must be at least rank 1 but is rank 0"));
    }
    let count = query.constants.get(2).and_then(Option::as_ref);
    let count = count.and_then(|count| integer(count, || invalid!("not a scalar")).ok()).unwrap_or(-1);
    Ok(vec![PartialShape::new(&[&[count], &data[1..]].concat())])
}

fn sum_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![gather(dy, &op.input(1)), NoGradient])
}

fn mean_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [data, ids] = op.inputs()?;
    let scope = ids.scope();
    let tail = nodes::reshape(&(nodes::rank(&data) - 1.0), &nodes::ints(scope, &[1]));
    let tail = scope.op("Fill").input(&tail).input(&nodes::int(scope, 1)).output();
    let dims = nodes::concat(&[&nodes::shape(&ids, DType::I32), &tail]);
    let ones = scope.op("Fill").input(&dims).input(&dy.like(1.0)).output();
    Ok(grads![gather(&(dy / segment_sum(&ones, &ids)), &ids), NoGradient])
}

/// The derivative of a factor is the product of the others: by division if no factor is zero; if one is, only the zero
/// itself has a derivative.
fn prod_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [data, ids] = op.inputs()?;
    let zero = nodes::pair("Equal", &data, &data.like(0.0));
    let zeros = segment_sum(&nodes::cast(&zero, DType::I32), &ids);
    let dy = nodes::select(&nodes::pair("Greater", &zeros, &zeros.like(1.0)), &dy.like(0.0), dy);
    let others = nodes::select(&zero, &data.like(1.0), &data);
    let rest = gather(&op.output(0), &ids) / &others;
    let rest = nodes::select(&zero, &gather(&segment_prod(&others, &ids), &ids), &rest);
    Ok(grads![gather(&dy, &ids) * rest, NoGradient])
}

/// The elements that have the extreme value of their segment share its gradient.
fn extreme_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [data, ids] = op.inputs()?;
    let chosen = nodes::pair("Equal", &data, &gather(&op.output(0), &ids));
    let shares = segment_sum(&nodes::cast(&chosen, dy.dtype()), &ids);
    let parts = gather(&(dy / shares), &ids);
    Ok(grads![nodes::select(&chosen, &parts, &parts.like(0.0)), NoGradient])
}

fn sum_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => Ok(kernel::<T>(T::ZERO, T::add, |_, _| {})))
}

fn mean_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, i64, u64, Complex32, Complex64], T => Ok(kernel::<T>(T::ZERO, T::add, |row, count| {
        let count = T::of_count(count);
        // A count that wraps around to zero in a small integer type must not stop the server.
        if count != T::ZERO {
            row.iter_mut().for_each(|value| *value = Number::div(*value, count));
        }
    })))
}

fn prod_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => Ok(kernel::<T>(T::ONE, T::mul, |_, _| {})))
}

/// Whether the number of segments is an input; then segments without rows have no zeros but the least or the largest.
fn counted(setup: &Setup<'_>) -> bool {
    setup.input_types().len() == 3
}

fn max_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, i32, i64, u64], T => {
        let missing = if counted(setup) { T::ends(setup.dtype("T")?).0 } else { T::ZERO };
        Ok(kernel::<T>(missing, Ordered::larger, |_, _| {}))
    })
}

fn min_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, i32, i64, u64], T => {
        let missing = if counted(setup) { T::ends(setup.dtype("T")?).1 } else { T::ZERO };
        Ok(kernel::<T>(missing, Ordered::smaller, |_, _| {}))
    })
}

/// `missing` fills segments without rows, `combine` joins two rows, `finish` gets the number of rows of a segment.
fn kernel<T: Element>(
    missing: T,
    combine: impl Fn(T, T) -> T + Copy + Send + Sync + 'static,
    finish: fn(&mut [T], usize),
) -> Kernel {
    many(move |ctx, inputs| run(ctx, inputs, missing, combine, finish)).heavy()
}

fn run<T: Element>(
    ctx: &Ctx<'_>,
    mut inputs: Inputs,
    missing: T,
    combine: impl Fn(T, T) -> T + Copy + Sync,
    finish: fn(&mut [T], usize),
) -> Result<Outputs> {
    let (data, ids) = (inputs.tensor(0)?, inputs.tensor(1)?);
    if data.shape().rank() == 0 {
        return Err(invalid!("input must be at least rank 1"));
    }
    if ids.shape().rank() != 1 {
        return Err(invalid!("segment_ids should be a vector."));
    }
    if ids.elements() != data.shape()[0] {
        return Err(invalid!("segment_ids should be the same size as dimension 0 of input."));
    }
    let limit = match inputs.len() {
        3 => Some(integer(&inputs.tensor(2)?, || invalid!("num_segments should be a scalar"))?),
        _ => None,
    };
    let rows = for_indices!(&ids, values: I => segment_count::<I>(values, limit))?;
    let ids = for_indices!(&ids, values: I => Ok(values.iter().map(|&id| id as usize).collect::<Vec<_>>()))?;
    let row = &data.shape()[1..];
    let (width, values) = (product(row), data.values::<T>()?);
    let mut output = Tensor::scratch::<T>(shape_of(&[&[rows], row])?)?;
    each_segment(ctx, output.values_mut::<T>()?, width, &ids, |row, members| {
        let count = members.len();
        let mut sources = members.map(|i| &values[i * width..][..width]);
        match sources.next() {
            Some(first) => row.copy_from_slice(first),
            None => return row.fill(missing),
        }
        for source in sources {
            row.iter_mut().zip(source).for_each(|(to, &from)| *to = combine(*to, from));
        }
        if count > 1 {
            finish(row, count);
        }
    });
    Ok(outputs![output])
}

/// The number of segments of ascending ids, which are all in range then. `limit` is the requested number, if there is
/// one.
pub(super) fn segment_count<I: Index>(ids: &[I], limit: Option<i64>) -> Result<usize> {
    let last = ids.last().map_or(-1, |id| id.wide());
    let rows = match limit {
        Some(limit) if limit < 0 => return Err(invalid!("segment ids must be >= 0")),
        Some(limit) if last >= limit => return Err(invalid!("segment ids must be < num_segments")),
        Some(limit) => limit,
        None => last.checked_add(1).ok_or_else(|| invalid!("Last segment id must be < kintmax, got {last}"))?,
    };
    if rows < 0 || (rows == 0 && !ids.is_empty()) {
        return Err(invalid!("segment ids must be >= 0"));
    }
    let rising = ids.windows(2).position(|pair| pair[0] > pair[1]);
    let checked = &ids[..rising.unwrap_or(ids.len())];
    if let Some(id) = checked.iter().map(|id| id.wide()).find(|id| !(0..rows).contains(id)) {
        return Err(invalid!(
            "Segment id {id} out of range [0, {rows}), possibly because 'segment_ids' input is not sorted."
        ));
    }
    if rising.is_some() {
        return Err(invalid!("segment ids are not increasing"));
    }
    Ok(rows as usize)
}

/// Calls `body` once for every row of `dst`, with the positions of its number in the ascending `ids`.
pub(super) fn each_segment<T: Send>(
    ctx: &Ctx<'_>,
    dst: &mut [T],
    width: usize,
    ids: &[usize],
    body: impl Fn(&mut [T], Range<usize>) + Sync,
) {
    if dst.is_empty() {
        return;
    }
    let rows = dst.len() / width;
    let each = ids.len() as f32 / rows as f32;
    let cost = 4.0 + (each + 1.0) * (width * size_of::<T>()) as f32 / 8.0;
    split_rows_mut(ctx.pool(), cost, dst, width, |first, part| {
        let mut start = ids.partition_point(|&id| id < first);
        for (number, row) in part.chunks_exact_mut(width).enumerate() {
            let members = ids[start..].iter().take_while(|&&id| id == first + number).count();
            body(row, start..start + members);
            start += members;
        }
    });
}
