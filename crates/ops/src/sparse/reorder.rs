//! SparseReorder: sorts values by their coordinates.

use super::coo::{Coo, sorted_order};
use crate::array::gather::{gather, run_gather};
use crate::array::index::from_places;
use crate::array::invert_permutation::invert_permutation;
use crate::array::nodes;
use graph::{Node, Output};
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::Result;
use tensor::{DType, PartialShape};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseReorder(input_indices: int64, input_values: T, input_shape: int64) -> output_indices: int64, \
          output_values: T; T: type",
    shape: reorder_shape,
    grad: Grad::Rules(rule),
    kernel,
    facts: PLAIN,
}];

/// Indices in rising order, and the values that belong to them.
pub fn sparse_reorder(indices: &Output, values: &Output, shape: &Output) -> (Output, Output) {
    let node = values.scope().op("SparseReorder").input(indices).input(values).input(shape).node();
    (node.output(0), node.output(1))
}

fn reorder_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let indices = query.inputs[0].merge(&PartialShape::of_rank(2))?;
    let values = query.inputs[1].merge(&PartialShape::of_rank(1))?;
    Ok(vec![indices, values])
}

/// The rule reorders value numbers in the same way, which shows the origin of each value.
fn rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let [indices, values, shape] = op.inputs()?;
    let numbers = nodes::range(&nodes::size(&values, DType::I32));
    let (_, order) = sparse_reorder(&indices, &numbers, &shape);
    let back = dys[1].as_ref().map(|dy| gather(dy, &invert_permutation(&order)));
    Ok(grads![NoGradient, back, NoGradient])
}

fn kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(run))
}

fn run(ctx: &Ctx<'_>, mut inputs: Inputs) -> Result<Outputs> {
    let (indices, values, shape) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let coo = Coo::new(&indices, &values, &shape)?;
    if (1..coo.count()).all(|number| coo.index(number - 1) <= coo.index(number)) {
        return Ok(outputs![indices, values]);
    }
    let order = sorted_order(coo.count(), |number| coo.index(number));
    let order = from_places(&order, [order.len()], DType::I64)?;
    Ok(outputs![run_gather(ctx, &indices, &order, 0, 0)?, run_gather(ctx, &values, &order, 0, 0)?])
}
