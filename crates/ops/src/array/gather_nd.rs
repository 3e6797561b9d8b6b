//! GatherNd: slices of a tensor picked by vectors of indices.

use super::index::{Index, joined, largest, place, product, shape_of};
use super::nodes;
use super::scatter_nd::ignores_bad_indices;
use super::units::Unit;
use graph::{Node, Output};
use math::parallel::split_rows_mut;
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, ShapeQuery, Slices, binary, grads};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "GatherNd(params: Tparams, indices: Tindices) -> output: Tparams; Tparams: type; \
          Tindices: {int16, int32, int64}; bad_indices_policy: string = \"\"",
    shape: gather_nd_shape,
    grad: Grad::Rule(gather_nd_rule),
    kernel: gather_nd_kernel,
    facts: PLAIN,
}];

/// The slices of `params` that the vectors in the last axis of `indices` name.
pub fn gather_nd(params: &Output, indices: &Output) -> Output {
    params.scope().op("GatherNd").input(params).input(indices).output()
}

fn gather_nd_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (Some(params), Some(indices)) = (query.inputs[0].dims(), query.inputs[1].dims()) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let Some((&depth, outer)) = indices.split_last() else {
        return Err(invalid!("Shape must be at least rank 1 but is rank 0"));
    };
    match usize::try_from(depth) {
        Ok(depth) if depth > params.len() => Err(invalid!(
            "indices.shape[-1] must be <= params.rank, but saw indices shape: {} and params shape: {}",
            query.inputs[1],
            query.inputs[0]
        )),
        Ok(depth) => Ok(vec![PartialShape::new(&[outer, &params[depth..]].concat())]),
        Err(_) => Ok(vec![PartialShape::unknown()]),
    }
}

/// Slices that were picked get the sum of the gradients of their copies. With vectors of one index that is a gradient
/// of rows.
fn gather_nd_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [params, indices] = op.inputs()?;
    let dims = nodes::shape(&params, indices.dtype());
    let static_indices = indices.shape();
    if static_indices.rank() == Some(2) && static_indices.dim(1) == Some(1) {
        let scope = indices.scope();
        let rows = scope.op("Squeeze").input(&indices).attr("squeeze_dims", vec![-1_i64]).output();
        return Ok(grads![Slices { indices: rows, values: dy.clone(), shape: Some(dims) }, NoGradient]);
    }
    let policy = op.attr("bad_indices_policy")?;
    let scatter = dy.scope().op("ScatterNd").input(&indices).input(dy).input(&dims).attr("bad_indices_policy", policy);
    Ok(grads![scatter.output(), NoGradient])
}

fn gather_nd_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let ignore = ignores_bad_indices(setup)?;
    let name = setup.name().to_string();
    Ok(binary(move |ctx, params, indices| run_gather_nd(ctx, &params, &indices, ignore, &name)))
}

/// The slices of `params` at the index vectors in the last axis of `indices`; errors name `node`.
pub(crate) fn run_gather_nd(
    ctx: &Ctx<'_>,
    params: &Tensor,
    indices: &Tensor,
    ignore: bool,
    node: &str,
) -> Result<Tensor> {
    let shape = result_shape(params, indices)?;
    let depth = indices.shape()[indices.shape().rank() - 1];
    let outer = &indices.shape()[..indices.shape().rank() - 1];
    let count = product(outer);
    if count == 0 {
        return Tensor::scratch_of(params.dtype(), shape);
    }
    if params.elements() == 0 {
        return Err(invalid!("Requested more than 0 entries, but params is empty.  Params shape: {}", params.shape()));
    }
    let bad = |bad: usize| {
        let vector = op::shapes::integers(indices).map(|all| joined(&all[bad * depth..][..depth], ", "));
        invalid!(
            "indices{} = [{}] does not index into param shape {}, node name: {node}",
            place(outer, bad),
            vector.unwrap_or_default(),
            params.shape()
        )
    };
    let starts = for_indices!(indices, values: I => Ok(starts::<I>(values, count, &params.shape()[..depth])))?;
    match starts.iter().position(|&start| start == OUTSIDE) {
        Some(first) if !ignore => return Err(bad(first)),
        _ => {}
    }
    let inner = product(&params.shape()[depth..]);
    let mut out = Tensor::scratch_of(params.dtype(), shape)?;
    for_runs!(params.dtype(), inner, (E, width) => copy(ctx, E::of(params)?, &starts, E::of_mut(&mut out)?, width));
    Ok(out)
}

fn result_shape(params: &Tensor, indices: &Tensor) -> Result<Shape> {
    if params.shape().rank() == 0 {
        return Err(invalid!("params must be at least a vector"));
    }
    let Some((&depth, outer)) = indices.shape().split_last() else {
        return Err(invalid!("indices must be at least a vector"));
    };
    if depth > params.shape().rank() {
        return Err(invalid!(
            "index innermost dimension length must be <= params rank; saw: {depth} vs. {}",
            params.shape().rank()
        ));
    }
    let count = shape_of(&[outer])?.elements();
    if count > i32::MAX as usize {
        return Err(invalid!("indices has too many elements for int indexing: {count} > {}", i32::MAX));
    }
    let (elements, highest) = (params.elements(), largest(indices.dtype()));
    if elements as i64 > highest {
        return Err(invalid!(
            "params.NumElements() too large for {} indexing: {elements} > {highest}",
            indices.dtype()
        ));
    }
    shape_of(&[outer, &params.shape()[depth..]])
}

/// Marks a vector that names no slice.
pub(crate) const OUTSIDE: usize = math::rows::NOWHERE;

/// The number of the slice that each of `count` vectors names, counted over the dimensions it indexes.
pub(crate) fn starts<I: Index>(indices: &[I], count: usize, dims: &[usize]) -> Vec<usize> {
    if dims.is_empty() {
        return vec![0; count];
    }
    if let [limit] = *dims {
        return indices.iter().map(|index| index.below(limit).unwrap_or(OUTSIDE)).collect();
    }
    let start = |vector: &[I]| {
        let mut start = 0;
        for (index, &dim) in vector.iter().zip(dims) {
            match index.below(dim) {
                Some(place) => start = start * dim + place,
                None => return OUTSIDE,
            }
        }
        start
    };
    indices.chunks_exact(dims.len()).map(start).collect()
}

fn copy<E: Unit>(ctx: &Ctx<'_>, params: &[E], starts: &[usize], out: &mut [E], width: usize) {
    if width == 0 {
        return;
    }
    let cost = 3.0 + (width * size_of::<E>()) as f32 / 16.0;
    split_rows_mut(ctx.pool(), cost, out, width, |first, rows| {
        for (row, &start) in rows.chunks_exact_mut(width).zip(&starts[first..]) {
            match start {
                OUTSIDE => row.fill(E::default()),
                _ => row.clone_from_slice(&params[start * width..][..width]),
            }
        }
    });
}
