//! Gradients of SparseSegmentSum, Mean and SqrtN, which add rows at the positions they were picked from.

use super::index::{first_outside, integer, product, shape_of};
use super::nodes;
use super::numbers::Summed;
use super::sparse_segment::{Norm, places, sparse_segment_with_count};
use graph::{Node, Output};
use math::function::{Number, Real};
use math::rows;
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

macro_rules! row {
    ($def:literal, $norm:expr) => {
        Op { def: $def, shape: grad_shape, grad: Grad::Unknown, kernel: |setup| kernel(setup, $norm), facts: PLAIN }
    };
}

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SparseSegmentSumGrad(grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32) -> output: T; \
              T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32",
        shape: grad_shape,
        grad: Grad::Rule(sum_grad_rule),
        kernel: |setup| kernel(setup, Norm::Sum),
        facts: PLAIN,
    },
    row!(
        "SparseSegmentMeanGrad(grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32) -> output: T; \
         T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32",
        Norm::Mean
    ),
    row!(
        "SparseSegmentSqrtNGrad(grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32) -> output: T; \
         T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; Tsegmentids: {int32, int64} = int32",
        Norm::SqrtN
    ),
    row!(
        "SparseSegmentSumGradV2(grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32) -> output: T, \
         sorted_unique_indices: Tidx; T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; \
         Tsegmentids: {int32, int64} = int32",
        Norm::Sum
    ),
    row!(
        "SparseSegmentMeanGradV2(grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32) -> output: T, \
         sorted_unique_indices: Tidx; T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; \
         Tsegmentids: {int32, int64} = int32",
        Norm::Mean
    ),
    row!(
        "SparseSegmentSqrtNGradV2(grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32) -> output: T, \
         sorted_unique_indices: Tidx; T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32; \
         Tsegmentids: {int32, int64} = int32",
        Norm::SqrtN
    ),
];

fn op_name(norm: Norm) -> &'static str {
    match norm {
        Norm::Sum => "SparseSegmentSumGrad",
        Norm::Mean => "SparseSegmentMeanGrad",
        Norm::SqrtN => "SparseSegmentSqrtNGrad",
    }
}

/// The gradient of the picked rows: the row of `grad` of each segment is added to the rows it was computed from, of
/// which there are `dim0`.
pub fn sparse_segment_grad(norm: Norm, grad: &Output, indices: &Output, segment_ids: &Output, dim0: &Output) -> Output {
    grad.scope().op(op_name(norm)).input(grad).input(indices).input(segment_ids).input(dim0).output()
}

/// As `sparse_segment_grad`, but only the rows that were picked, and their numbers.
pub fn sparse_segment_grad_v2(
    norm: Norm,
    grad: &Output,
    indices: &Output,
    segment_ids: &Output,
    dim0: &Output,
) -> (Output, Output) {
    let op = format!("{}V2", op_name(norm));
    let node = grad.scope().op(&op).input(grad).input(indices).input(segment_ids).input(dim0).node();
    (node.output(0), node.output(1))
}

fn grad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    query.inputs[1].merge(&PartialShape::of_rank(1))?.merge(&query.inputs[2])?;
    let Some(grad) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown(); query.outputs]) };
    if grad.is_empty() {
        return Err(invalid!("Shape must be at least rank 1 but is rank 0"));
    }
    let rows = query.constants[3].as_ref().and_then(|rows| integer(rows, || invalid!("not a scalar")).ok());
    let rows = rows.filter(|_| query.outputs == 1).unwrap_or(-1);
    let mut shapes = vec![PartialShape::new(&[&[rows], &grad[1..]].concat())];
    shapes.resize(query.outputs, PartialShape::of_rank(1));
    Ok(shapes)
}

/// The sum is linear, so its gradient's gradient is the sum again.
fn sum_grad_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [grad, indices, ids, _] = op.inputs()?;
    let count = nodes::element(&nodes::shape(&grad, DType::I32), 0);
    let back = sparse_segment_with_count(Norm::Sum, dy, &indices, &ids, &count);
    Ok(grads![back, NoGradient, NoGradient, NoGradient])
}

fn kernel(setup: &Setup<'_>, norm: Norm) -> Result<Kernel> {
    let rows_only = setup.output_types().len() == 2;
    let kernel = for_core!(setup, [f32, f64], T => Ok(many(move |ctx, inputs| {
        run::<T>(ctx, inputs, norm, rows_only)
    })));
    Ok(kernel?.heavy())
}

fn run<T: Summed + Real>(ctx: &Ctx<'_>, mut inputs: Inputs, norm: Norm, rows_only: bool) -> Result<Outputs> {
    let (grad, indices, ids, dim0) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?, inputs.tensor(3)?);
    let rows = checked_rows(&indices, &ids, &dim0, rows_only)?;
    let Some((&segments, row)) = grad.shape().split_first() else {
        return Err(invalid!("Shape must be at least rank 1"));
    };
    let shape = shape_of(&[&[rows], row])?;
    if rows == 0 || indices.elements() == 0 {
        return match rows_only {
            true => Ok(outputs![Tensor::zeros::<T>(shape_of(&[&[0], row])?)?, Tensor::zeros_of(indices.dtype(), [0])?]),
            false => Ok(outputs![Tensor::zeros::<T>(shape)?]),
        };
    }
    check_ranges(&indices, rows, &ids, segments)?;
    let (mut targets, ids) = (places(&indices)?, places(&ids)?);
    if !rows_only {
        return Ok(outputs![send_back::<T>(ctx, &grad, &targets, &ids, norm, shape)?]);
    }
    let mut unique = targets.clone();
    unique.sort_unstable();
    unique.dedup();
    for target in &mut targets {
        *target = unique.partition_point(|row| row < target);
    }
    let output = send_back::<T>(ctx, &grad, &targets, &ids, norm, shape_of(&[&[unique.len()], row])?)?;
    Ok(outputs![output, numbers(&unique, indices.dtype())?])
}

fn checked_rows(indices: &Tensor, ids: &Tensor, dim0: &Tensor, rows_only: bool) -> Result<usize> {
    if indices.shape().rank() != 1 {
        return Err(invalid!("indices should be a vector."));
    }
    if ids.shape().rank() != 1 {
        return Err(invalid!("segment_ids should be a vector."));
    }
    let name = if rows_only { "dense_output_dim0" } else { "output_dim0" };
    let rows = integer(dim0, || invalid!("{name} should be a scalar."))?;
    if indices.elements() != ids.elements() {
        return Err(invalid!("segment_ids and indices should have same size."));
    }
    usize::try_from(rows).map_err(|_| invalid!("Expected a non-negative size, got {rows}"))
}

fn check_ranges(indices: &Tensor, rows: usize, ids: &Tensor, segments: usize) -> Result<()> {
    let (all_indices, all_ids) = (op::shapes::integers(indices)?, op::shapes::integers(ids)?);
    if all_ids.last().is_some_and(|&last| last >= segments as i64) {
        return Err(invalid!("Invalid number of segments"));
    }
    let bad_index = first_outside(&all_indices, rows);
    let bad_id = first_outside(&all_ids, segments);
    match (bad_index, bad_id) {
        (Some(at), id) if id.is_none_or(|id| at <= id) => {
            Err(invalid!("Index {} out of range [0, {rows}).", all_indices[at]))
        }
        (_, Some(at)) => Err(invalid!("Segment id {} out of range [0, {segments}).", all_ids[at])),
        _ => Ok(()),
    }
}

/// Adds the scaled gradient of segment `ids[i]` to row `targets[i]`.
fn send_back<T: Summed + Real>(
    ctx: &Ctx<'_>,
    grad: &Tensor,
    targets: &[usize],
    ids: &[usize],
    norm: Norm,
    shape: Shape,
) -> Result<Tensor> {
    let width = product(&shape[1..]);
    let values = grad.values::<T>()?;
    let mut counts = vec![0_usize; grad.shape()[0]];
    ids.iter().for_each(|&id| counts[id] += 1);
    let scales: Vec<T> = counts.iter().map(|&count| T::from_f64(1.0 / norm.divisor(count))).collect();
    let mut sums = Tensor::zeros::<T>(shape)?;
    let cost = 4.0 + (width * size_of::<T>()) as f32 / 8.0;
    rows::combine(ctx.pool(), cost, sums.values_mut::<T>()?, width, targets, |row, i| {
        let (scale, source) = (scales[ids[i]], &values[ids[i] * width..][..width]);
        for (to, &from) in row.iter_mut().zip(source) {
            *to = Number::add(*to, Number::mul(from, scale));
        }
    });
    Ok(sums)
}

/// Row numbers as a vector of an index type.
fn numbers(rows: &[usize], dtype: DType) -> Result<Tensor> {
    match dtype {
        DType::I32 => Ok(Tensor::vector(&rows.iter().map(|&row| row as i32).collect::<Vec<_>>())),
        _ => Ok(Tensor::vector(&rows.iter().map(|&row| row as i64).collect::<Vec<_>>())),
    }
}
