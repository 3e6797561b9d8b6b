//! ListDiff: the elements of one vector that are not in another.

use super::gather::run_gather;
use super::index::from_places;
use super::keys::keys;
use graph::Output;
use op::{Ctx, Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use rustc_hash::{FxHashMap, FxHashSet};
use status::{Result, invalid};
use tensor::{DType, PartialShape};

pub(crate) const OPS: &[Op] = &[Op {
    def: "ListDiff(x: T, y: T) -> out: T, idx: out_idx; T: type; out_idx: {int32, int64} = int32",
    shape: list_diff_shape,
    grad: Grad::Stop,
    kernel: list_diff_kernel,
    facts: PLAIN,
}];

/// The elements of `x` that are not in `y`, in order, and where they stand.
pub fn list_diff(x: &Output, y: &Output) -> (Output, Output) {
    let node = x.scope().op("ListDiff").input(x).input(y).node();
    (node.output(0), node.output(1))
}

fn list_diff_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    query.inputs.iter().try_for_each(|input| input.merge(&PartialShape::of_rank(1)).map(drop))?;
    Ok(vec![PartialShape::of_rank(1); 2])
}

fn list_diff_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let out_type = setup.dtype("out_idx")?;
    Ok(many(move |ctx, inputs| run(ctx, inputs, out_type)))
}

fn run(ctx: &Ctx<'_>, mut inputs: Inputs, out_type: DType) -> Result<Outputs> {
    let (x, y) = (inputs.tensor(0)?, inputs.tensor(1)?);
    if x.shape().rank() != 1 {
        return Err(invalid!("x should be a 1D vector."));
    }
    if y.shape().rank() != 1 {
        return Err(invalid!("y should be a 1D vector."));
    }
    if x.elements() >= i32::MAX as usize {
        return Err(invalid!("x too large for int32 indexing"));
    }
    let mut names = FxHashMap::default();
    let known: FxHashSet<u64> = keys(&y, 0, &mut names)?.into_iter().collect();
    let candidates = keys(&x, y.elements(), &mut names)?;
    let kept: Vec<usize> = (0..candidates.len()).filter(|&place| !known.contains(&candidates[place])).collect();
    let places = from_places(&kept, [kept.len()], DType::I64)?;
    Ok(outputs![run_gather(ctx, &x, &places, 0, 0)?, from_places(&kept, [kept.len()], out_type)?])
}
