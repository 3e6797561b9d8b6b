//! RaggedGather: rows of a ragged tensor picked by index.

use super::ragged_range::ragged_range;
use crate::array::gather::gather;
use crate::array::index::{first_outside, from_places, place, product, shape_of};
use crate::array::nodes;
use crate::array::units::Unit;
use graph::{Node, Output};
use op::{Grad, Gradient, Grads, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, Slices, many};
use status::{Result, invalid};
use std::ops::Range;
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "RaggedGather(params_nested_splits: PARAMS_RAGGED_RANK * Tsplits, params_dense_values: Tvalues, \
          indices: Tindices) -> output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits, output_dense_values: Tvalues; \
          Tvalues: type; Tindices: {int32, int64}; Tsplits: {int32, int64} = int64; PARAMS_RAGGED_RANK: int >= 1; \
          OUTPUT_RAGGED_RANK: int >= 0",
    shape: gather_shape,
    grad: Grad::Rules(rule),
    kernel,
    facts: PLAIN,
}];

fn gather_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let mut shapes = vec![PartialShape::of_rank(1); query.outputs - 1];
    let values = &query.inputs[query.inputs.len() - 2];
    shapes.push(match values.dims() {
        Some([_, row @ ..]) => PartialShape::new(&[&[-1], row].concat()),
        _ => PartialShape::unknown(),
    });
    Ok(shapes)
}

/// The values of picked rows are ranges of values, which determine where their gradients are added.
fn rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let inputs = op.all_inputs();
    let mut grads: Grads = inputs.iter().map(|_| None).collect();
    let Some(Some(dy)) = dys.last() else { return Ok(grads) };
    let (splits, values, indices) = (&inputs[..inputs.len() - 2], &inputs[inputs.len() - 2], &inputs[inputs.len() - 1]);
    let mut ends = splits[0].clone();
    for inner in &splits[1..] {
        ends = gather(inner, &ends);
    }
    let rows = nodes::flat(indices);
    let (starts, limits) = (gather(&ends, &rows), gather(&nodes::part(&ends, 1, None), &rows));
    let (_, places) = ragged_range(&starts, &limits, &starts.like(1.0));
    let slices = Slices { indices: places, values: dy.clone(), shape: Some(nodes::shape(values, DType::I32)) };
    grads[inputs.len() - 2] = Some(Gradient::Sparse(slices));
    Ok(grads)
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let depth = setup.int("PARAMS_RAGGED_RANK")? as usize;
    let (out_depth, splits_type) = (setup.int("OUTPUT_RAGGED_RANK")? as usize, setup.dtype("Tsplits")?);
    Ok(many(move |_, inputs| run(inputs, depth, out_depth, splits_type)))
}

fn run(mut inputs: Inputs, depth: usize, out_depth: usize, splits_type: DType) -> Result<Outputs> {
    let splits = inputs.tensors(0, depth)?;
    let (values, indices) = (inputs.tensor(depth)?, inputs.tensor(depth + 1)?);
    if splits[0].shape().rank() == 0 {
        return Err(invalid!("Split tensors must not be scalars"));
    }
    let rows = op::shapes::integers(&indices)?;
    let count = splits[0].elements().saturating_sub(1);
    if let Some(bad) = first_outside(&rows, count) {
        return Err(invalid!("indices{} = {} is not in [0, {count})", place(indices.shape(), bad), rows[bad]));
    }
    if values.shape().rank() == 0 {
        return Err(invalid!("params.rank must be nonzero"));
    }
    if (out_depth + 1) as i64 != depth as i64 + indices.shape().rank() as i64 {
        return Err(invalid!("OUTPUT_RAGGED_RANK must be indices.rank + PARAMS_RAGGED_RANK - 1, got {out_depth}"));
    }
    let splits = checked_splits(&splits, values.shape()[0])?;
    let mut results = outer_splits(indices.shape());
    let ranges = inner_splits(&splits, &rows, indices.shape().rank(), &mut results);
    let mut outputs = Outputs::new();
    for splits in &results {
        outputs.push(from_places(splits, [splits.len()], splits_type)?.into());
    }
    outputs.push(picked(&values, &ranges)?.into());
    Ok(outputs)
}

fn checked_splits(splits: &[Tensor], values: usize) -> Result<Vec<Vec<usize>>> {
    let all = splits.iter().map(op::shapes::integers).collect::<Result<Vec<_>>>()?;
    for (level, splits) in all.iter().enumerate() {
        // A level inside has one split more than rows.
        let limit = all.get(level + 1).map_or(values, Vec::len);
        let (Some(&first), Some(&last)) = (splits.first(), splits.last()) else {
            return Err(invalid!("Ragged splits may not be empty"));
        };
        if first < 0 {
            return Err(invalid!("Ragged splits must be non-negative"));
        }
        if last > limit as i64 || (level + 1 < all.len() && last >= limit as i64) {
            return Err(invalid!("Ragged splits must not point past values"));
        }
        if splits.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(invalid!("Ragged splits must be sorted"));
        }
    }
    Ok(all.into_iter().map(|splits| splits.into_iter().map(|split| split as usize).collect()).collect())
}

/// Splits of the axes of the indices, which are uniform.
fn outer_splits(shape: &[usize]) -> Vec<Vec<usize>> {
    let axes = 1..shape.len();
    axes.map(|axis| (0..=product(&shape[..axis])).map(|row| row * shape[axis]).collect()).collect()
}

/// Splits of the picked rows, level by level, and the values they hold.
fn inner_splits(splits: &[Vec<usize>], rows: &[i64], rank: usize, results: &mut Vec<Vec<usize>>) -> Vec<Range<usize>> {
    results.resize((splits.len() + rank).saturating_sub(1), vec![0]);
    let mut ranges = Vec::with_capacity(rows.len());
    for &row in rows {
        let mut range = row as usize..row as usize + 1;
        for (level, splits) in splits.iter().enumerate() {
            // With a single index the outermost level disappears.
            if let Some(result) = (level + rank).checked_sub(1).map(|level| &mut results[level]) {
                let (base, start) = (result.last().copied().unwrap_or(0), splits[range.start]);
                result.extend(range.clone().map(|at| base + splits[at + 1] - start));
            }
            range = splits[range.start]..splits[range.end];
        }
        ranges.push(range);
    }
    ranges
}

fn picked(values: &Tensor, ranges: &[Range<usize>]) -> Result<Tensor> {
    let row = &values.shape()[1..];
    let count = ranges.iter().map(ExactSizeIterator::len).sum::<usize>();
    let mut output = Tensor::scratch_of(values.dtype(), shape_of(&[&[count], row])?)?;
    for_runs!(values.dtype(), product(row), (E, width) => copy(E::of(values)?, ranges, width, E::of_mut(&mut output)?));
    Ok(output)
}

fn copy<E: Unit>(values: &[E], ranges: &[Range<usize>], width: usize, output: &mut [E]) {
    let mut rest = output;
    for range in ranges {
        let source = &values[range.start * width..range.end * width];
        let (now, later) = rest.split_at_mut(source.len());
        now.clone_from_slice(source);
        rest = later;
    }
}
