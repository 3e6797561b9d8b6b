//! Gather and GatherV2: slices of a tensor picked along one axis.

use super::index::{Index, first_outside, integer, largest, place, product, shape_of};
use super::nodes;
use super::units::Unit;
use graph::{AttrValue, Node, Output};
use math::parallel::split_rows_mut;
use op::{
    Ctx, Grad, Grads, Kernel, NoGradient, Op, PLAIN, Peek, Setup, ShapeQuery, Slices, binary, grads, many, outputs,
};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Gather(params: Tparams, indices: Tindices) -> output: Tparams; validate_indices: bool = true; \
              Tparams: type; Tindices: {int32, int64}",
        shape: gather_shape,
        grad: Grad::Rule(gather_rule),
        kernel: gather_kernel,
        facts: PLAIN,
    },
    Op {
        def: "GatherV2(params: Tparams, indices: Tindices, axis: Taxis) -> output: Tparams; batch_dims: int = 0; \
              Tparams: type; Tindices: {int16, int32, int64}; Taxis: {int32, int64}",
        shape: gather_shape,
        grad: Grad::Rule(gather_v2_rule),
        kernel: gather_v2_kernel,
        facts: PLAIN,
    },
];

/// Slices `indices` of `params` along its first axis.
pub fn gather(params: &Output, indices: &Output) -> Output {
    gather_along(params, indices, 0, 0)
}

/// Slices `indices` of `params` along `axis`; the first `batch_dims` axes of both go together.
pub fn gather_along(params: &Output, indices: &Output, axis: i32, batch_dims: i64) -> Output {
    let axis = nodes::int(params.scope(), axis);
    let builder = params.scope().op("GatherV2").input(params).input(indices).input(&axis);
    builder.attr("batch_dims", batch_dims).output()
}

fn gather_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (params, indices) = (&query.inputs[0], &query.inputs[1]);
    let axis = match query.inputs.len() {
        2 => Some(0),
        _ => query.constants[2].as_ref().and_then(|axis| integer(axis, || invalid!("axis must be scalar")).ok()),
    };
    let batch = match query.attr("batch_dims") {
        Ok(AttrValue::Int(batch)) => *batch,
        _ => 0,
    };
    let (Some(p), Some(i), Some(axis)) = (params.dims(), indices.dims(), axis) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let rank = p.len() as i64;
    let least = if axis < 0 { axis.saturating_neg() } else { axis.saturating_add(1) };
    if rank < least {
        return Err(invalid!("Shape must be at least rank {least} but is rank {rank}"));
    }
    let axis = if axis < 0 { axis + rank } else { axis } as usize;
    let batch = if batch < 0 { batch + i.len() as i64 } else { batch };
    let skipped = usize::try_from(batch).ok().filter(|&batch| batch <= i.len() && batch <= axis);
    let Some(skipped) = skipped else {
        return Err(invalid!("batch_dims ({batch}) must be less than or equal to axis ({axis})"));
    };
    Ok(vec![PartialShape::new(&[&p[..axis], &i[skipped..], &p[axis + 1..]].concat())])
}

fn gather_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![rows_gradient(&op.input(0), &op.input(1), dy), NoGradient])
}

fn gather_v2_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [params, indices, axis] = op.inputs()?;
    let batch_dims = op.attr_int("batch_dims")?;
    let known = axis.constant().and_then(|axis| integer(&axis, || invalid!("axis must be scalar")).ok());
    if known == Some(0) && batch_dims == 0 {
        return Ok(grads![rows_gradient(&params, &indices, dy), NoGradient, NoGradient]);
    }
    Ok(grads![whole_gradient(&params, &indices, &axis, batch_dims, dy), NoGradient, NoGradient])
}

/// Rows of the gradient: those that were picked, as often as they were.
fn rows_gradient(params: &Output, indices: &Output, dy: &Output) -> Slices {
    let dims = nodes::shape(params, DType::I32);
    let row = params.shape().dims().and_then(|dims| PartialShape::new(dims.get(1..)?).known());
    let rows_shape = match row.filter(|row| !row.is_empty() && row.elements() > 0) {
        Some(row) => {
            let dims: Vec<i32> = std::iter::once(-1).chain(row.iter().map(|&dim| dim as i32)).collect();
            nodes::ints(params.scope(), &dims)
        }
        None => {
            let count = nodes::reshape(&nodes::size(indices, DType::I32), &nodes::ints(indices.scope(), &[1]));
            nodes::concat(&[&count, &nodes::part(&dims, 1, None)])
        }
    };
    Slices { indices: nodes::flat(indices), values: nodes::reshape(dy, &rows_shape), shape: Some(dims) }
}

/// The gradient along any axis: with the picked axis brought forward, gradients of one slice are summed.
fn whole_gradient(params: &Output, indices: &Output, axis: &Output, batch_dims: i64, dy: &Output) -> Output {
    let scope = params.scope();
    let dims = nodes::shape(params, DType::I32);
    let axis = nodes::cast(axis, DType::I32);
    let axis = (&axis + nodes::rank(params)) % nodes::rank(params);
    let batch_dims = match batch_dims < 0 {
        true => nodes::rank(indices) + batch_dims as f64,
        false => nodes::int(scope, batch_dims as i32),
    };
    let span = |begin: &Output, end: Option<&Output>| {
        let all = nodes::range(&nodes::rank(params));
        let after = nodes::pair("GreaterEqual", &all, begin);
        let inside = match end {
            Some(end) => nodes::pair("LogicalAnd", &after, &nodes::pair("Less", &all, end)),
            None => after,
        };
        nodes::product(&nodes::select(&inside, &dims, &dims.like(1.0)))
    };
    let batch = span(&nodes::int(scope, 0), Some(&batch_dims));
    let outer = span(&batch_dims, Some(&axis));
    let limit = span(&axis, Some(&(&axis + 1.0)));
    let inner = span(&(&axis + 1.0), None);
    let pack = |dims: &[&Output]| {
        let ones: Vec<Output> = dims.iter().map(|dim| nodes::reshape(dim, &nodes::ints(scope, &[1]))).collect();
        nodes::concat(&ones.iter().collect::<Vec<_>>())
    };
    let minus_one = nodes::int(scope, -1);
    let count =
        nodes::pair("FloorDiv", &nodes::size(indices, DType::I32), &nodes::pair("Maximum", &batch, &batch.like(1.0)));
    let blocks = nodes::reshape(dy, &pack(&[&batch, &outer, &count, &inner]));
    let rows = nodes::reshape(&nodes::transpose(&blocks, &[0, 2, 1, 3]), &pack(&[&(&batch * &count), &outer, &inner]));
    let first = nodes::cast(&(nodes::range(&batch) * &limit), indices.dtype());
    let ids = nodes::reshape(indices, &pack(&[&batch, &count]))
        + nodes::reshape(&first, &pack(&[&minus_one, &outer.like(1.0)]));
    let sums = super::unsorted_segment::unsorted_segment_sum(&rows, &nodes::flat(&ids), &(&batch * &limit));
    let sums = nodes::reshape(&sums, &pack(&[&batch, &limit, &outer, &inner]));
    nodes::reshape(&nodes::transpose(&sums, &[0, 2, 1, 3]), &dims)
}

fn gather_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|ctx, params, indices| run_gather(ctx, &params, &indices, 0, 0)).with_work(work))
}

fn gather_v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let batch_dims = setup.int("batch_dims")?;
    Ok(many(move |ctx, mut inputs| {
        let (params, indices) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if params.shape().rank() == 0 {
            return Err(invalid!("params must be at least 1 dimensional"));
        }
        let axis = integer(&inputs.tensor(2)?, || invalid!("axis must be scalar"))?;
        Ok(outputs![run_gather(ctx, &params, &indices, axis, batch_dims)?])
    })
    .with_work(work))
}

/// The number of elements that are picked, not the number to pick from. Batches count as if every index picked from
/// all of them.
pub(crate) fn work(inputs: &Peek<'_>) -> usize {
    let (Some(params), Some(indices)) = (inputs.shape(0), inputs.shape(1)) else { return usize::MAX };
    let axis = inputs.tensor(2).and_then(|axis| integer(axis, || invalid!("axis must be scalar")).ok()).unwrap_or(0);
    let axis = if axis < 0 { axis.saturating_add(params.rank() as i64) } else { axis };
    let dim = usize::try_from(axis).ok().and_then(|axis| params.get(axis).copied()).unwrap_or(1);
    (params.elements() / dim.max(1)).saturating_mul(indices.elements())
}

/// Slices `indices` of `params` along `axis`, which counts from the back if it is negative.
pub(crate) fn run_gather(
    ctx: &Ctx<'_>,
    params: &Tensor,
    indices: &Tensor,
    axis: i64,
    batch_dims: i64,
) -> Result<Tensor> {
    let plan = Plan::new(params.shape(), indices, axis, batch_dims)?;
    if plan.shape.elements() == 0 {
        return Tensor::scratch_of(params.dtype(), plan.shape);
    }
    match indices.dtype() {
        DType::I32 => plan.run(ctx, params, indices.values::<i32>()?, indices.shape()),
        DType::I64 => plan.run(ctx, params, indices.values::<i64>()?, indices.shape()),
        _ => plan.run(ctx, params, &op::shapes::integers(indices)?, indices.shape()),
    }
}

/// The sizes of a gather: `params` is `batch x outer x limit x inner`, the indices are `batch x count`.
struct Plan {
    outer: usize,
    limit: usize,
    inner: usize,
    count: usize,
    shape: Shape,
}

impl Plan {
    fn new(params: &Shape, indices: &Tensor, axis: i64, batch_dims: i64) -> Result<Plan> {
        let picks = indices.shape();
        let rank = params.rank() as i64;
        if rank == 0 {
            return Err(invalid!("params must be at least 1 dimensional"));
        }
        if axis == i64::MAX {
            return Err(invalid!("axis must be less than kint64max"));
        }
        let least = if axis < 0 { axis.saturating_neg() } else { axis + 1 };
        if rank < least {
            return Err(invalid!("Shape must be at least rank {least} but is rank {rank}"));
        }
        let axis = if axis < 0 { axis + rank } else { axis } as usize;
        let batch = checked_batch(params, picks, axis, batch_dims)?;
        let limit = params[axis];
        let highest = largest(indices.dtype());
        if limit as i64 > highest {
            return Err(invalid!(
                "params.shape[{axis}] too large for {} indexing: {limit} > {highest}",
                indices.dtype()
            ));
        }
        let shape = shape_of(&[&params[..axis], &picks[batch..], &params[axis + 1..]])?;
        Ok(Plan {
            outer: product(&params[batch..axis]),
            limit,
            inner: product(&params[axis + 1..]),
            count: product(&picks[batch..]),
            shape,
        })
    }

    fn run<I: Index>(&self, ctx: &Ctx<'_>, params: &Tensor, indices: &[I], picks: &Shape) -> Result<Tensor> {
        if let Some(bad) = first_outside(indices, self.limit) {
            let place = place(picks, bad);
            return Err(invalid!("indices{place} = {} is not in [0, {})", indices[bad], self.limit));
        }
        let mut out = Tensor::scratch_of(params.dtype(), self.shape.clone())?;
        for_runs!(params.dtype(), self.inner, (E, width) => {
            self.copy(ctx, E::of(params)?, indices, E::of_mut(&mut out)?, width);
        });
        Ok(out)
    }

    /// Copies one slice after the other; every index is below the limit.
    fn copy<E: Unit, I: Index>(&self, ctx: &Ctx<'_>, params: &[E], indices: &[I], out: &mut [E], width: usize) {
        let cost = 3.0 + (width * size_of::<E>()) as f32 / 16.0;
        split_rows_mut(ctx.pool(), cost, out, width, |first, rows| {
            let (mut block, mut skipped, mut rows) = (first / self.count, first % self.count, rows);
            while !rows.is_empty() {
                let start = block / self.outer * self.count;
                let picks = &indices[start + skipped..start + self.count];
                let picks = &picks[..picks.len().min(rows.len() / width)];
                let (now, later) = rows.split_at_mut(picks.len() * width);
                let table = &params[block * self.limit * width..][..self.limit * width];
                copy_rows(table, picks, now, width);
                (block, skipped, rows) = (block + 1, 0, later);
            }
        });
    }
}

fn checked_batch(params: &Shape, picks: &Shape, axis: usize, batch_dims: i64) -> Result<usize> {
    if batch_dims == 0 {
        return Ok(0);
    }
    let rank = picks.rank() as i64;
    if batch_dims < -rank || batch_dims > rank {
        return Err(invalid!("Expected batch_dims in the range [{}, {rank}], but got {batch_dims}", -rank));
    }
    let batch = if batch_dims < 0 { batch_dims + rank } else { batch_dims } as usize;
    if batch >= params.rank() {
        return Err(invalid!("batch_dims ({batch}) must be less than rank(params) ({}).", params.rank()));
    }
    if axis < batch {
        return Err(invalid!("batch_dims ({batch}) must be less than or equal to axis ({axis})."));
    }
    for i in 0..batch {
        if params[i] != picks[i] {
            return Err(invalid!(
                "params.shape[{i}]: {} should be equal to indices.shape[{i}]: {}",
                params[i],
                picks[i]
            ));
        }
    }
    Ok(batch)
}

/// `out[i] = table[picks[i]]`, where all are rows of `width` units.
fn copy_rows<E: Unit, I: Index>(table: &[E], picks: &[I], out: &mut [E], width: usize) {
    if width == 1 {
        for (unit, pick) in out.iter_mut().zip(picks) {
            *unit = table[pick.wide() as usize].clone();
        }
        return;
    }
    for (row, pick) in out.chunks_exact_mut(width).zip(picks) {
        row.clone_from_slice(&table[pick.wide() as usize * width..][..width]);
    }
}
