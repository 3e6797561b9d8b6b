//! SparseSegmentSum, Mean, SqrtN: picks rows by index and reduces those with equal ids, where ids are ascending.

use super::index::{first_outside, integer, product, shape_of};
use super::nodes;
use super::numbers::Summed;
use super::segment::{each_segment, segment_count};
use super::sparse_segment_grad::{sparse_segment_grad, sparse_segment_grad_v2};
use graph::{Node, Output};
use math::function::{Number, Real};
use op::{Ctx, Grad, Grads, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, Slices, grads, many, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

macro_rules! row {
    ($def:literal, $norm:expr) => {
        Op {
            def: $def,
            shape: sparse_segment_shape,
            grad: Grad::Rule(|op, dy| rule(op, dy, $norm)),
            kernel: |setup| kernel(setup, $norm),
            facts: PLAIN,
        }
    };
}

pub(crate) const OPS: &[Op] = &[
    row!(
        "SparseSegmentSum(data: T, indices: Tidx, segment_ids: Tsegmentids) -> output: T; T: realnumbertype; \
         Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32; sparse_gradient: bool = false",
        Norm::Sum
    ),
    row!(
        "SparseSegmentMean(data: T, indices: Tidx, segment_ids: Tsegmentids) -> output: T; \
         T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32; \
         sparse_gradient: bool = false",
        Norm::Mean
    ),
    row!(
        "SparseSegmentSqrtN(data: T, indices: Tidx, segment_ids: Tsegmentids) -> output: T; \
         T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32; \
         sparse_gradient: bool = false",
        Norm::SqrtN
    ),
    row!(
        "SparseSegmentSumWithNumSegments(data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments) \
         -> output: T; T: realnumbertype; Tidx: {int32, int64} = int32; Tnumsegments: {int32, int64} = int32; \
         Tsegmentids: {int32, int64} = int32; sparse_gradient: bool = false",
        Norm::Sum
    ),
    row!(
        "SparseSegmentMeanWithNumSegments(data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments) \
         -> output: T; T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; \
         Tnumsegments: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32; sparse_gradient: bool = false",
        Norm::Mean
    ),
    row!(
        "SparseSegmentSqrtNWithNumSegments(data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments) \
         -> output: T; T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; \
         Tnumsegments: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32; sparse_gradient: bool = false",
        Norm::SqrtN
    ),
];

/// The divisor of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// No division.
    Sum,
    /// How many were added.
    Mean,
    /// The square root of that.
    SqrtN,
}

impl Norm {
    fn op(self) -> &'static str {
        match self {
            Norm::Sum => "SparseSegmentSum",
            Norm::Mean => "SparseSegmentMean",
            Norm::SqrtN => "SparseSegmentSqrtN",
        }
    }

    /// The divisor of the sum of `count` rows.
    pub(super) fn divisor(self, count: usize) -> f64 {
        match self {
            Norm::Sum => 1.0,
            Norm::Mean => count.max(1) as f64,
            Norm::SqrtN => (count.max(1) as f64).sqrt(),
        }
    }
}

/// Rows `indices` of `data`, reduced by `segment_ids`, which rise.
pub fn sparse_segment(norm: Norm, data: &Output, indices: &Output, segment_ids: &Output) -> Output {
    data.scope().op(norm.op()).input(data).input(indices).input(segment_ids).output()
}

/// As `sparse_segment`, with the number of segments given: those at the end may be empty.
pub fn sparse_segment_with_count(
    norm: Norm,
    data: &Output,
    indices: &Output,
    segment_ids: &Output,
    num_segments: &Output,
) -> Output {
    let op = format!("{}WithNumSegments", norm.op());
    data.scope().op(&op).input(data).input(indices).input(segment_ids).input(num_segments).output()
}

fn sparse_segment_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let vector = PartialShape::of_rank(1);
    query.inputs[1].merge(&vector)?.merge(&query.inputs[2])?;
    let Some(data) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    if data.is_empty() {
        return Err(invalid!("Shape must be at least rank 1 but is rank 0"));
    }
    let count = query.constants.get(3).and_then(Option::as_ref);
    let count = count.map(|count| integer(count, || invalid!("num_segments should be a scalar"))).transpose()?;
    if count.is_some_and(|count| count < 0) {
        return Err(invalid!("Cannot specify a negative value for num_segments"));
    }
    Ok(vec![PartialShape::new(&[&[count.unwrap_or(-1)], &data[1..]].concat())])
}

fn rule(op: &Node, dy: &Output, norm: Norm) -> Result<Grads> {
    let inputs = op.all_inputs();
    let [data, indices, ids] = &inputs[..3] else { return Err(invalid!("{} has too few inputs", op.name())) };
    let dims = nodes::shape(data, DType::I32);
    let rows = nodes::element(&dims, 0);
    let mut grads = match op.attr_bool("sparse_gradient")? {
        true => {
            let (values, indices) = sparse_segment_grad_v2(norm, dy, indices, ids, &rows);
            grads![Slices { indices, values, shape: Some(dims) }]
        }
        false => grads![sparse_segment_grad(norm, dy, indices, ids, &rows)],
    };
    grads.resize_with(inputs.len(), || None);
    Ok(grads)
}

fn kernel(setup: &Setup<'_>, norm: Norm) -> Result<Kernel> {
    let kernel = match norm {
        Norm::Sum => {
            for_core!(setup, [f32, f64, i32, i64], T => Ok(many(|ctx, inputs| run::<T>(ctx, inputs, |_, _| {}))))
        }
        _ => for_core!(setup, [f32, f64], T => Ok(many(move |ctx, inputs| {
            run::<T>(ctx, inputs, |row, count| divide(row, norm.divisor(count)))
        }))),
    };
    Ok(kernel?.heavy())
}

fn divide<T: Real>(row: &mut [T], divisor: f64) {
    let divisor = T::from_f64(divisor);
    row.iter_mut().for_each(|value| *value = Number::div(*value, divisor));
}

fn run<T: Summed>(ctx: &Ctx<'_>, mut inputs: Inputs, finish: impl Fn(&mut [T], usize) + Sync) -> Result<Outputs> {
    let (data, indices, ids) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let limit = match inputs.len() {
        4 => Some(checked_limit(&inputs.tensor(3)?)?),
        _ => None,
    };
    check_vectors(&data, &indices, &ids)?;
    let rows = for_indices!(&ids, values: I => segment_count::<I>(values, limit))?;
    let (table, row) = (data.shape()[0], &data.shape()[1..]);
    let shape = shape_of(&[&[rows], row])?;
    if let Some(bad) = for_indices!(&indices, values: I => Ok(first_outside::<I>(values, table)))? {
        let value = op::shapes::integers(&indices)?[bad];
        return Err(invalid!("Bad: indices[{bad}] == {value} out of range [0, {table})"));
    }
    let mut output = Tensor::scratch::<T>(shape)?;
    let (ids, picks) = (places(&ids)?, places(&indices)?);
    let (width, values) = (product(row), data.values::<T>()?);
    each_segment(ctx, output.values_mut::<T>()?, width, &ids, |row, members| {
        reduce(row, values, width, &picks[members], &finish);
    });
    Ok(outputs![output])
}

fn checked_limit(limit: &Tensor) -> Result<i64> {
    let shape = limit.shape();
    let limit = integer(limit, || invalid!("num_segments should be a scalar, not shape {shape}"))?;
    if limit < 0 { Err(invalid!("segment ids must be >= 0")) } else { Ok(limit) }
}

fn check_vectors(data: &Tensor, indices: &Tensor, ids: &Tensor) -> Result<()> {
    if indices.shape().rank() != 1 {
        return Err(invalid!("indices should be a vector."));
    }
    if ids.shape().rank() != 1 {
        return Err(invalid!("segment_ids should be a vector."));
    }
    if indices.elements() != ids.elements() {
        return Err(invalid!("segment_ids and indices should have same size."));
    }
    if data.shape().rank() == 0 {
        return Err(invalid!("Shape must be at least rank 1"));
    }
    Ok(())
}

/// Indices that were checked, as places.
pub(super) fn places(indices: &Tensor) -> Result<Vec<usize>> {
    for_indices!(indices, values: I => Ok(values.iter().map(|&index| index as usize).collect()))
}

/// `row` is the sum of the picked rows of `values`.
fn reduce<T: Summed>(row: &mut [T], values: &[T], width: usize, picks: &[usize], finish: impl Fn(&mut [T], usize)) {
    let source = |pick: usize| &values[pick * width..][..width];
    match picks {
        [] => row.fill(T::ZERO),
        [only] => row.copy_from_slice(source(*only)),
        [first, rest @ ..] => {
            row.copy_from_slice(source(*first));
            for (start, sums) in (0..width).step_by(LANES).zip(row.chunks_mut(LANES)) {
                for &pick in rest {
                    let values = &source(pick)[start..];
                    sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum = Number::add(*sum, value));
                }
            }
            finish(row, picks.len());
        }
    }
}

/// The number of columns summed at once: their sums fit in the L1 cache.
const LANES: usize = 256;
