//! SparseSoftmax: the softmax over the values of each row.

use super::coo::{Coo, sorted_order};
use super::dense_cwise::sparse_dense_values_add;
use super::reduce::sparse_reduce_sum;
use crate::array::index::joined;
use crate::array::nodes;
use graph::{Node, Output};
use math::function::{Number, Ordered, Real};
use op::{Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseSoftmax(sp_indices: int64, sp_values: T, sp_shape: int64) -> output: T; T: {half, float, double}",
    shape: softmax_shape,
    grad: Grad::Rule(rule),
    kernel,
    facts: PLAIN,
}];

/// The softmax over the values of each row of a sparse tensor; missing elements count as minus infinity.
pub fn sparse_softmax(a: [&Output; 3]) -> Output {
    a[1].scope().op("SparseSoftmax").input(a[0]).input(a[1]).input(a[2]).output()
}

fn softmax_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[1].merge(&PartialShape::of_rank(1))?])
}

/// With y = softmax(x):  dx = (dy - sum(dy y)) y, row by row.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [indices, _, shape] = op.inputs()?;
    let y = op.output(0);
    let last = nodes::ints(dy.scope(), &[-1]);
    let sums = -sparse_reduce_sum([&indices, &(dy * &y), &shape], &last, true);
    Ok(grads![NoGradient, sparse_dense_values_add([&indices, dy, &shape], &sums) * y, NoGradient])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64], T => Ok(many(|_, inputs| run::<T>(inputs))))
}

fn run<T: Element + Real>(mut inputs: Inputs) -> Result<Outputs> {
    let (indices, values, shape) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    if indices.shape().rank() != 2 {
        return Err(invalid!("Input sp_indices should be a matrix but received shape: {}", indices.shape()));
    }
    if values.shape().rank() != 1 || shape.shape().rank() != 1 {
        return Err(invalid!(
            "Inputs sp_values and sp_shape should be vectors but received shapes: {} and {}",
            values.shape(),
            shape.shape()
        ));
    }
    if shape.elements() < 2 {
        let dims = joined(shape.values::<i64>()?, " ");
        return Err(invalid!("Input should have rank >= 2, but received shape: {dims}"));
    }
    let coo = Coo::new(&indices, &values, &shape)?;
    coo.shape()?;
    let order = sorted_order(coo.count(), |number| coo.index(number));
    let row = |number: usize| &coo.index(number)[..coo.rank() - 1];
    let values = values.values::<T>()?;
    let mut sorted: Vec<T> = order.iter().map(|&number| values[number]).collect();
    let mut start = 0;
    for group in order.chunk_by(|&a, &b| row(a) == row(b)) {
        normalize(&mut sorted[start..start + group.len()]);
        start += group.len();
    }
    Ok(outputs![Tensor::vector(&sorted)])
}

fn normalize<T: Real>(row: &mut [T]) {
    let top = row.iter().copied().fold(T::LOWEST, Ordered::larger);
    row.iter_mut().for_each(|value| *value = Real::exp(value.sub(top)));
    let sum = row.iter().copied().fold(T::ZERO, Number::add);
    row.iter_mut().for_each(|value| *value = Number::div(*value, sum));
}
