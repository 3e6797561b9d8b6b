//! SparseConcat: concatenates sparse tensors along an axis.

use super::coo::{index_tensor, sorted_order};
use crate::array::units::Unit;
use graph::Output;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, internal, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseConcat(indices: N * int64, values: N * T, shapes: N * int64) -> output_indices: int64, output_values: T, \
          output_shape: int64; concat_dim: int; N: int >= 2; T: type",
    shape: concat_shape,
    grad: Grad::Stop,
    kernel,
    facts: PLAIN,
}];

/// Concatenates sparse tensors along `axis`: indices, values, shape.
pub fn sparse_concat(indices: &[Output], values: &[Output], shapes: &[Output], axis: i64) -> (Output, Output, Output) {
    let builder = values[0].scope().op("SparseConcat").inputs(indices).inputs(values).inputs(shapes);
    let node = builder.attr("concat_dim", axis).node();
    (node.output(0), node.output(1), node.output(2))
}

fn concat_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let count = query.inputs.len() / 3;
    let mut shape = PartialShape::of_rank(1);
    for input in &query.inputs[2 * count..] {
        shape = shape.merge(input)?;
    }
    let rank = shape.dims().map_or(-1, |dims| dims[0]);
    Ok(vec![PartialShape::new(&[-1, rank]), PartialShape::of_rank(1), shape])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (count, axis) = (setup.int("N")? as usize, setup.int("concat_dim")?);
    Ok(many(move |_, inputs| run(inputs, count, axis)))
}

fn run(mut inputs: Inputs, count: usize, axis: i64) -> Result<Outputs> {
    let (indices, values) = (inputs.tensors(0, count)?, inputs.tensors(count, count)?);
    let shapes = inputs.tensors(2 * count, count)?;
    check(&indices, &values, &shapes)?;
    let rank = shapes[0].elements();
    let Some(axis) = crate::array::args::to_axis(axis, rank) else {
        return Err(invalid!("Concat dimension must be in range [-{rank}, {rank}), got {axis}"));
    };
    let (total, offsets) = joined_shape(&shapes, axis)?;
    let mut all = Vec::new();
    for ((indices, values), offset) in indices.iter().zip(&values).zip(offsets) {
        if indices.shape()[1] != rank || indices.shape()[0] != values.elements() {
            return Err(invalid!(
                "indices and values rows (indexing dimension) must match. (indices = {}, values = {})",
                indices.shape()[0],
                values.elements()
            ));
        }
        let start = all.len();
        all.extend_from_slice(indices.values::<i64>()?);
        all[start..].iter_mut().skip(axis).step_by(rank).for_each(|at| *at = at.wrapping_add(offset));
    }
    let entries = values.iter().map(Tensor::elements).sum();
    let order = sorted_order(entries, |number| &all[number * rank..][..rank]);
    let sorted: Vec<i64> = order.iter().flat_map(|&number| &all[number * rank..][..rank]).copied().collect();
    let picked = pick(&values, &order)?;
    Ok(outputs![index_tensor(&sorted, entries, rank)?, picked, Tensor::vector(&total.to_i64())])
}

fn check(indices: &[Tensor], values: &[Tensor], shapes: &[Tensor]) -> Result<()> {
    let of_rank = |tensors: &[Tensor], rank: usize, what: &str| match tensors
        .iter()
        .position(|tensor| tensor.shape().rank() != rank)
    {
        Some(at) => Err(invalid!("{what} but received shape {} at position {at}", tensors[at].shape())),
        None => Ok(()),
    };
    of_rank(indices, 2, "Input indices should be a matrix")?;
    of_rank(values, 1, "Input values should be a vector")?;
    of_rank(shapes, 1, "Input shapes should be a vector")
}

/// The shape of the whole, and where each part begins on the axis.
fn joined_shape(shapes: &[Tensor], axis: usize) -> Result<(Shape, Vec<i64>)> {
    let overflow = |_| internal!("Encountered overflow from large input shape.");
    let first = Shape::checked(shapes[0].values::<i64>()?).map_err(overflow)?;
    let (mut total, mut offsets) = (first.to_i64(), vec![0]);
    for (position, shape) in shapes.iter().enumerate().skip(1) {
        let shape = Shape::checked(shape.values::<i64>()?).map_err(overflow)?;
        if shape.rank() != first.rank() {
            return Err(invalid!(
                "Ranks of all input tensors must match: expected {} but got {} at position {position}",
                first.rank(),
                shape.rank()
            ));
        }
        if let Some(at) = (0..first.rank()).find(|&at| at != axis && first[at] != shape[at]) {
            return Err(invalid!(
                "Input shapes must match: expected {} for dimension {at} but got {} at position {position}",
                first[at],
                shape[at]
            ));
        }
        offsets.push(total[axis]);
        total[axis] = total[axis].checked_add(shape[axis] as i64).ok_or_else(|| overflow(invalid!("")))?;
    }
    Ok((Shape::checked(&total)?, offsets))
}

/// Elements of all vectors, counted through, in a new order.
fn pick(values: &[Tensor], order: &[usize]) -> Result<Tensor> {
    let mut picked = Tensor::scratch_of(values[0].dtype(), [order.len()])?;
    for_units!(values[0].dtype(), E => {
        let parts = values.iter().map(E::of).collect::<Result<Vec<_>>>()?;
        fill(&parts, order, E::of_mut(&mut picked)?);
    });
    Ok(picked)
}

fn fill<E: Unit>(parts: &[&[E]], order: &[usize], picked: &mut [E]) {
    let all: Vec<&E> = parts.iter().flat_map(|part| part.iter()).collect();
    picked.iter_mut().zip(order).for_each(|(to, &number)| *to = all[number].clone());
}
