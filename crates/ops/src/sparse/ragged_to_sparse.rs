//! RaggedTensorToSparse: the values of a ragged tensor with their coordinates.

use super::coo::index_tensor;
use crate::array::nodes;
use graph::{Node, Output};
use op::{Grad, Gradient, Grads, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "RaggedTensorToSparse(rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T) -> sparse_indices: int64, \
          sparse_values: T, sparse_dense_shape: int64; RAGGED_RANK: int >= 1; T: type; Tsplits: {int32, int64} = int64",
    shape: sparse_shape,
    grad: Grad::Rules(rule),
    kernel,
    facts: PLAIN,
}];

fn sparse_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let depth = query.inputs.len() as i64 - 1;
    let rank = query.inputs[query.inputs.len() - 1].rank().map_or(-1, |rank| rank as i64 + depth);
    Ok(vec![PartialShape::new(&[-1, rank]), PartialShape::of_rank(1), PartialShape::new(&[rank])])
}

fn rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let inputs = op.all_inputs();
    let mut grads: Grads = inputs.iter().map(|_| None).collect();
    if let (Some(dy), Some(values), Some(grad)) = (&dys[1], inputs.last(), grads.last_mut()) {
        *grad = Some(Gradient::Dense(nodes::reshape(dy, &nodes::shape(values, DType::I32))));
    }
    Ok(grads)
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let depth = setup.int("RAGGED_RANK")? as usize;
    Ok(many(move |_, inputs| run(inputs, depth)))
}

fn run(mut inputs: Inputs, depth: usize) -> Result<Outputs> {
    let splits = inputs.tensors(0, depth)?;
    let values = inputs.tensor(depth)?;
    let splits = splits.iter().map(op::shapes::integers).collect::<Result<Vec<_>>>()?;
    check(&splits, &values)?;
    let widest = |splits: &[i64]| splits.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let mut dims = vec![splits[0].len() as i64 - 1];
    dims.extend(splits.iter().map(|splits| widest(splits)));
    dims.extend(values.shape()[1..].iter().map(|&dim| dim as i64));
    let inner = &values.shape()[1..];
    let mut rows = Vec::new();
    let mut prefix = vec![0; depth + 1];
    for row in 0..splits[0].len() - 1 {
        prefix[0] = row as i64;
        walk(&splits, row, &mut prefix, 0, inner, &mut rows);
    }
    let count = values.elements();
    Ok(outputs![index_tensor(&rows, count, dims.len())?, values.reshaped([count])?, Tensor::vector(&dims)])
}

/// Coordinates of everything in row `row` of level `level`; those of the levels above stand in `prefix`.
fn walk(splits: &[Vec<i64>], row: usize, prefix: &mut [i64], level: usize, inner: &[usize], rows: &mut Vec<i64>) {
    let (start, end) = (splits[level][row] as usize, splits[level][row + 1] as usize);
    for (number, place) in (start..end).enumerate() {
        prefix[level + 1] = number as i64;
        match level + 1 < splits.len() {
            true => walk(splits, place, prefix, level + 1, inner, rows),
            false => {
                for element in 0..inner.iter().product() {
                    rows.extend_from_slice(prefix);
                    rows.extend(coordinates(element, inner));
                }
            }
        }
    }
}

fn coordinates(element: usize, dims: &[usize]) -> impl Iterator<Item = i64> + '_ {
    (0..dims.len()).map(move |axis| (element / dims[axis + 1..].iter().product::<usize>() % dims[axis]) as i64)
}

fn check(splits: &[Vec<i64>], values: &Tensor) -> Result<()> {
    let ends = || invalid!("Final value of ragged splits must match the length the corresponding ragged values.");
    let mut rows = None;
    for splits in splits {
        match splits.first() {
            None => return Err(invalid!("ragged splits may not be empty.")),
            Some(0) => {}
            Some(_) => return Err(invalid!("First value of ragged splits must be 0.")),
        }
        if let Some(pair) = splits.windows(2).find(|pair| pair[0] > pair[1]) {
            return Err(invalid!(
                "Ragged splits should be non decreasing, but we got {} followed by {}",
                pair[0],
                pair[1]
            ));
        }
        if rows.is_some_and(|rows| rows != splits.len() as i64 - 1) {
            return Err(ends());
        }
        rows = splits.last().copied();
    }
    match values.shape().first() {
        Some(&count) if Some(count as i64) == rows => Ok(()),
        Some(_) => Err(ends()),
        None => Err(invalid!("values of a ragged tensor must be at least a vector")),
    }
}
