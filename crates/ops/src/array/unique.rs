//! Unique and UniqueWithCounts: the distinct elements, or slices, of a tensor.

use super::gather::run_gather;
use super::index::{from_places, product};
use super::keys::{Distinct, keys};
use graph::Output;
use op::{Ctx, Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

macro_rules! row {
    ($def:literal) => {
        Op { def: $def, shape: unique_shape, grad: Grad::Stop, kernel: unique_kernel, facts: PLAIN }
    };
}

pub(crate) const OPS: &[Op] = &[
    row!("Unique(x: T) -> y: T, idx: out_idx; T: type; out_idx: {int32, int64} = int32"),
    row!(
        "UniqueV2(x: T, axis: Taxis) -> y: T, idx: out_idx; T: type; Taxis: {int32, int64} = int64; \
         out_idx: {int32, int64} = int32"
    ),
    row!("UniqueWithCounts(x: T) -> y: T, idx: out_idx, count: out_idx; T: type; out_idx: {int32, int64} = int32"),
    row!(
        "UniqueWithCountsV2(x: T, axis: Taxis) -> y: T, idx: out_idx, count: out_idx; T: type; \
         Taxis: {int32, int64} = int64; out_idx: {int32, int64} = int32"
    ),
];

/// The different elements of a vector in order of first appearance, and for each element which of them it is.
pub fn unique(x: &Output) -> (Output, Output) {
    let node = x.scope().op("Unique").input(x).node();
    (node.output(0), node.output(1))
}

/// As `unique`, and how often each appeared.
pub fn unique_with_counts(x: &Output) -> (Output, Output, Output) {
    let node = x.scope().op("UniqueWithCounts").input(x).node();
    (node.output(0), node.output(1), node.output(2))
}

fn unique_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let mut shapes = vec![PartialShape::of_rank(1); query.outputs];
    match query.inputs.len() {
        1 => {
            let x = query.inputs[0].merge(&PartialShape::of_rank(1))?;
            shapes[1] = x;
        }
        _ => shapes[0] = query.inputs[0].rank().map_or(PartialShape::unknown(), PartialShape::of_rank),
    }
    Ok(shapes)
}

fn unique_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, out_type) = (setup.dtype("T")?, setup.dtype("out_idx")?);
    if matches!(dtype, DType::C64 | DType::C128 | DType::RESOURCE | DType::VARIANT) {
        return Err(setup.no_kernel());
    }
    let counted = setup.output_types().len() > 2;
    Ok(many(move |ctx, inputs| run(ctx, inputs, out_type, counted)))
}

fn run(ctx: &Ctx<'_>, mut inputs: Inputs, out_type: DType, counted: bool) -> Result<Outputs> {
    let x = inputs.tensor(0)?;
    if x.elements() > i32::MAX as usize {
        return Err(invalid!("unique does not support input tensors larger than {} elements", i32::MAX));
    }
    let axis = match inputs.len() {
        1 => None,
        _ => checked_axis(&inputs.tensor(1)?, x.shape().rank())?,
    };
    if axis.is_none() && x.shape().rank() != 1 {
        return Err(invalid!("unique expects a 1D vector."));
    }
    let axis = axis.unwrap_or(0);
    let distinct = distinct_along(&x, axis)?;
    let firsts = from_places(&distinct.firsts, [distinct.firsts.len()], DType::I64)?;
    let values = run_gather(ctx, &x, &firsts, axis as i64, 0)?;
    let mut results = outputs![values, from_places(&distinct.ids, [distinct.ids.len()], out_type)?];
    if counted {
        let mut counts = vec![0; distinct.firsts.len()];
        distinct.ids.iter().for_each(|&id| counts[id] += 1);
        results.push(from_places(&counts, [counts.len()], out_type)?.into());
    }
    Ok(results)
}

fn checked_axis(axis: &Tensor, rank: usize) -> Result<Option<usize>> {
    if axis.shape().rank() != 1 {
        return Err(invalid!("axis expects a 1D vector."));
    }
    match op::shapes::integers(axis)?[..] {
        [] => Ok(None),
        [axis] => {
            let axis = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
            let inside = usize::try_from(axis).ok().filter(|&axis| axis < rank);
            inside.map(Some).ok_or_else(|| invalid!("axis has to be between [0, {rank})"))
        }
        _ => Err(invalid!("axis does not support input tensors larger than 1 elements")),
    }
}

fn distinct_along(x: &Tensor, axis: usize) -> Result<Distinct> {
    let shape = x.shape();
    let (outer, count, inner) = (product(&shape[..axis]), shape[axis], product(&shape[axis + 1..]));
    let mut names = FxHashMap::default();
    let keys = keys(x, 0, &mut names)?;
    match (outer, inner) {
        (1, 1) => Ok(Distinct::of(&keys)),
        // Slices of nothing are all equal.
        (outer, inner) if outer * inner == 0 => {
            Ok(Distinct { ids: vec![0; count], firsts: if count > 0 { vec![0] } else { Vec::new() } })
        }
        (1, width) => Ok(Distinct::of_rows(&keys, width)),
        _ => {
            let row = |place: usize| {
                (0..outer).flat_map(move |block| (block * count + place) * inner..(block * count + place + 1) * inner)
            };
            let rows: Vec<u64> = (0..count).flat_map(row).map(|place| keys[place]).collect();
            Ok(Distinct::of_rows(&rows, outer * inner))
        }
    }
}
