//! SparseTensorDenseAdd: a sparse tensor added to a dense one.

use crate::array::gather_nd::gather_nd;
use crate::array::index::joined;
use graph::{Node, Output};
use math::function::Number;
use op::{Grad, Grads, Inputs, NoGradient, Op, Outputs, PLAIN, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{Complex32, Complex64, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseTensorDenseAdd(a_indices: Tindices, a_values: T, a_shape: Tindices, b: T) -> output: T; T: numbertype; \
          Tindices: {int32, int64}",
    shape: sum_shape,
    grad: Grad::Rule(rule),
    kernel: |setup| for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => Ok(many(|_, inputs| run::<T>(inputs)))),
    facts: PLAIN,
}];

/// A sparse tensor, given as indices, values and shape, added to `b`.
pub fn sparse_dense_add(a: [&Output; 3], b: &Output) -> Output {
    b.scope().op("SparseTensorDenseAdd").input(a[0]).input(a[1]).input(a[2]).input(b).output()
}

fn sum_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[3].clone()])
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![NoGradient, gather_nd(dy, &op.input(0)), NoGradient, dy.clone()])
}

fn run<T: Element + Number>(mut inputs: Inputs) -> Result<Outputs> {
    let (indices, values, shape) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let mut sum = inputs.tensor(3)?;
    let rank = check(&indices, &values, &shape, &sum)?;
    let (all, dims) = (op::shapes::integers(&indices)?, op::shapes::integers(&shape)?);
    let places = flat_places(&all, &dims, rank, values.elements())?;
    let sums = sum.values_mut::<T>()?;
    for (place, &value) in places.into_iter().zip(values.values::<T>()?) {
        sums[place] = sums[place].add(value);
    }
    Ok(outputs![sum])
}

fn check(indices: &Tensor, values: &Tensor, shape: &Tensor, b: &Tensor) -> Result<usize> {
    let &[count, rank] = indices.shape().dims() else {
        return Err(invalid!("Input a_indices should be a matrix but received shape: {}", indices.shape()));
    };
    if values.shape().rank() != 1 || shape.shape().rank() != 1 {
        return Err(invalid!(
            "Inputs a_values and a_shape should be vectors but received shapes: {} and {}",
            values.shape(),
            shape.shape()
        ));
    }
    for (wanted, found) in [(count, values.elements()), (rank, shape.elements())] {
        if wanted != found {
            return Err(invalid!("Dimensions {wanted} and {found} are not compatible"));
        }
    }
    if rank != b.shape().rank() {
        return Err(invalid!("Two operands have different ranks; received: {rank} and {}", b.shape().rank()));
    }
    for (axis, (&sparse, &dense)) in op::shapes::integers(shape)?.iter().zip(b.shape().iter()).enumerate() {
        if sparse != dense as i64 {
            return Err(invalid!(
                "Dimension {axis} does not equal (no broadcasting is supported): sparse side {sparse} vs dense side {dense}"
            ));
        }
    }
    Ok(rank)
}

/// The position of each value in the dense tensor.
fn flat_places(all: &[i64], dims: &[i64], rank: usize, count: usize) -> Result<Vec<usize>> {
    let place = |number: usize| {
        let mut flat = 0;
        for (axis, &at) in all[number * rank..][..rank].iter().enumerate() {
            if at < 0 || at >= dims[axis] {
                return Err(invalid!(
                    "Sparse tensor has an invalid index on dimension {axis}: a_indices({number},{axis}) = {at}, \
                     dense tensor shape: {}",
                    joined(dims, " ")
                ));
            }
            flat = flat * dims[axis] as usize + at as usize;
        }
        Ok(flat)
    };
    (0..count).map(place).collect()
}
