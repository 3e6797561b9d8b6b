//! UnsortedSegmentSum, Prod, Max, Min: reduces the rows with equal ids, where ids are in any order.

use super::gather::gather;
use super::index::{integer, place, product, shape_of};
use super::nodes;
use super::numbers::Bounded;
use graph::{Node, Output};
use math::function::{Number, Ordered};
use math::rows;
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{Complex32, Complex64, DType, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "UnsortedSegmentSum(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T; \
              T: numbertype; Tindices: {int16, int32, int64}; Tnumsegments: {int32, int64} = int32",
        shape: unsorted_shape,
        grad: Grad::Rule(sum_rule),
        kernel: sum_kernel,
        facts: PLAIN,
    },
    Op {
        def: "UnsortedSegmentProd(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T; \
              T: numbertype; Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32",
        shape: unsorted_shape,
        grad: Grad::Rule(prod_rule),
        kernel: prod_kernel,
        facts: PLAIN,
    },
    Op {
        def: "UnsortedSegmentMax(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T; \
              T: realnumbertype; Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32",
        shape: unsorted_shape,
        grad: Grad::Rule(extreme_rule),
        kernel: max_kernel,
        facts: PLAIN,
    },
    Op {
        def: "UnsortedSegmentMin(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T; \
              T: realnumbertype; Tindices: {int32, int64}; Tnumsegments: {int32, int64} = int32",
        shape: unsorted_shape,
        grad: Grad::Rule(extreme_rule),
        kernel: min_kernel,
        facts: PLAIN,
    },
];

/// The sum of the rows with each id; rows with a negative id are left out.
pub fn unsorted_segment_sum(data: &Output, segment_ids: &Output, num_segments: &Output) -> Output {
    build("UnsortedSegmentSum", data, segment_ids, num_segments)
}

/// The product of the rows with each id.
pub fn unsorted_segment_prod(data: &Output, segment_ids: &Output, num_segments: &Output) -> Output {
    build("UnsortedSegmentProd", data, segment_ids, num_segments)
}

/// The largest of the rows with each id.
pub fn unsorted_segment_max(data: &Output, segment_ids: &Output, num_segments: &Output) -> Output {
    build("UnsortedSegmentMax", data, segment_ids, num_segments)
}

/// The smallest of the rows with each id.
pub fn unsorted_segment_min(data: &Output, segment_ids: &Output, num_segments: &Output) -> Output {
    build("UnsortedSegmentMin", data, segment_ids, num_segments)
}

fn build(op: &str, data: &Output, segment_ids: &Output, num_segments: &Output) -> Output {
    data.scope().op(op).input(data).input(segment_ids).input(num_segments).output()
}

fn unsorted_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (Some(data), Some(ids)) = (query.inputs[0].dims(), query.inputs[1].dims()) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    if data.len() < ids.len() {
        return Err(invalid!("Shape must be at least rank {} but is rank {}", ids.len(), data.len()));
    }
    PartialShape::new(&data[..ids.len()]).merge(&query.inputs[1])?;
    let count = query.constants[2].as_ref().and_then(|count| integer(count, || invalid!("not a scalar")).ok());
    Ok(vec![PartialShape::new(&[&[count.unwrap_or(-1)], &data[ids.len()..]].concat())])
}

/// Rows picked by id, zero where the id is negative; and which ids are not, as wide as a row.
fn picked(rows: &Output, ids: &Output) -> (Output, Output) {
    let found = gather(rows, &nodes::pair("Maximum", ids, &ids.like(0.0)));
    let known = nodes::pair("GreaterEqual", ids, &ids.like(0.0));
    let ones = nodes::rank(&found) - nodes::rank(ids);
    let ones = nodes::reshape(&ones, &nodes::ints(ids.scope(), &[1]));
    let tail = ids.scope().op("Fill").input(&ones).input(&nodes::int(ids.scope(), 1)).output();
    let known = nodes::reshape(&known, &nodes::concat(&[&nodes::shape(ids, DType::I32), &tail]));
    (nodes::select(&known, &found, &found.like(0.0)), known)
}

fn sum_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![picked(dy, &op.input(1)).0, NoGradient, NoGradient])
}

/// The elements that have the extreme value of their segment share its gradient.
fn extreme_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [data, ids, count] = op.inputs()?;
    let (extremes, known) = picked(&op.output(0), &ids);
    let chosen = nodes::pair("LogicalAnd", &nodes::pair("Equal", &data, &extremes), &known);
    let shares = unsorted_segment_sum(&nodes::cast(&chosen, dy.dtype()), &ids, &count);
    let (parts, _) = picked(&(dy / shares), &ids);
    Ok(grads![nodes::select(&chosen, &parts, &parts.like(0.0)), NoGradient, NoGradient])
}

/// The derivative of a factor is the product of the others: by division if no factor is zero; if one is, only the zero
/// itself has a derivative.
fn prod_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [data, ids, count] = op.inputs()?;
    let zero = nodes::pair("Equal", &data, &data.like(0.0));
    let zeros = unsorted_segment_sum(&nodes::cast(&zero, DType::I32), &ids, &count);
    let dy = nodes::select(&nodes::pair("Greater", &zeros, &zeros.like(1.0)), &dy.like(0.0), dy);
    let others = nodes::select(&zero, &data.like(1.0), &data);
    let product = unsorted_segment_prod(&others, &ids, &count);
    let place = nodes::pair("Maximum", &ids, &ids.like(0.0));
    let rest = gather(&op.output(0), &place) / &others;
    let rest = nodes::select(&zero, &gather(&product, &place), &rest);
    Ok(grads![picked(&dy, &ids).0 * rest, NoGradient, NoGradient])
}

fn sum_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => Ok(kernel::<T>(T::ZERO, T::add)))
}

fn prod_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => Ok(kernel::<T>(T::ONE, T::mul)))
}

fn max_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("T")?;
    for_core!(setup, [f32, f64, i32, i64, u64], T => Ok(kernel::<T>(T::ends(dtype).0, Ordered::larger)))
}

fn min_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("T")?;
    for_core!(setup, [f32, f64, i32, i64, u64], T => Ok(kernel::<T>(T::ends(dtype).1, Ordered::smaller)))
}

fn kernel<T: Element>(start: T, combine: impl Fn(T, T) -> T + Copy + Send + Sync + 'static) -> Kernel {
    many(move |ctx, inputs| run(ctx, inputs, start, combine)).heavy()
}

fn run<T: Element>(
    ctx: &Ctx<'_>,
    mut inputs: Inputs,
    start: T,
    combine: impl Fn(T, T) -> T + Copy + Sync,
) -> Result<Outputs> {
    let (data, ids) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let count = checked_count(&data, &ids, &inputs.tensor(2)?)?;
    let row = &data.shape()[ids.shape().rank()..];
    let shape = shape_of(&[&[count], row])?;
    let mut output = Tensor::scratch::<T>(shape)?;
    let (values, width) = (data.values::<T>()?, product(row));
    let out = output.values_mut::<T>()?;
    out.fill(start);
    if !values.is_empty() {
        let rows = row_numbers(&ids, count)?;
        let cost = 3.0 + (width * size_of::<T>()) as f32 / 8.0;
        rows::combine(ctx.pool(), cost, out, width, &rows, |to, i| {
            for (to, &from) in to.iter_mut().zip(&values[i * width..][..width]) {
                *to = combine(*to, from);
            }
        });
    }
    Ok(outputs![output])
}

fn checked_count(data: &Tensor, ids: &Tensor, count: &Tensor) -> Result<usize> {
    let shape = count.shape();
    let count = integer(count, || invalid!("num_segments should be a scalar, not shape {shape}"))?;
    if !data.shape().starts_with(ids.shape()) {
        return Err(invalid!("data.shape = {} does not start with segment_ids.shape = {}", data.shape(), ids.shape()));
    }
    usize::try_from(count).map_err(|_| invalid!("Input num_segments == {count} must not be negative."))
}

/// The row each id means; negative ids mean none.
fn row_numbers(ids: &Tensor, count: usize) -> Result<Vec<usize>> {
    let numbers: Vec<usize> = for_indices!(ids, values: I => Ok(values.iter().map(|&id| {
        if id < 0 as I { rows::NOWHERE } else { id as usize }
    }).collect()))?;
    match numbers.iter().position(|&number| number >= count && number != rows::NOWHERE) {
        Some(bad) => {
            Err(invalid!("segment_ids{} = {} is out of range [0, {count})", place(ids.shape(), bad), numbers[bad]))
        }
        None => Ok(numbers),
    }
}
