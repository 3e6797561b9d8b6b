//! SparseToDense: values at their positions, a default everywhere else.

use super::coo::{Coo, index_tensor};
use crate::array::gather_nd::gather_nd;
use crate::array::nodes;
use crate::array::units::Unit;
use graph::{Node, Output};
use op::shapes::shape_from_input;
use op::{Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseToDense(sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T) -> dense: T; \
          validate_indices: bool = true; T: type; Tindices: {int32, int64}",
    shape: dense_shape,
    grad: Grad::Rule(rule),
    kernel,
    facts: PLAIN,
}];

/// A tensor of `shape` with `values` at `indices` and `default` elsewhere; indices rise and do not repeat.
pub fn sparse_to_dense(indices: &Output, shape: &Output, values: &Output, default: &Output) -> Output {
    values.scope().op("SparseToDense").input(indices).input(shape).input(values).input(default).output()
}

fn dense_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![shape_from_input(query, 1)])
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let values = gather_nd(dy, &op.input(0));
    let total = |x: &Output| nodes::sum(x, &nodes::range(&nodes::rank(x)), false);
    Ok(grads![NoGradient, NoGradient, values.clone(), total(dy) - total(&values)])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let validate = setup.bool("validate_indices")?;
    Ok(many(move |_, inputs| run(inputs, validate)).heavy())
}

fn run(mut inputs: Inputs, validate: bool) -> Result<Outputs> {
    let (indices, shape) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let (values, default) = (inputs.tensor(2)?, inputs.tensor(3)?);
    let (count, rank) = check_shapes(&indices, &shape, &values, &default)?;
    let dims = op::shapes::integers(&shape)?;
    let shape = Shape::checked(&dims)?;
    let dims = Tensor::vector(&dims);
    let indices = index_tensor(&op::shapes::integers(&indices)?, count, rank)?;
    let one_each = Tensor::zeros::<bool>([count])?;
    let coo = Coo::new(&indices, &one_each, &dims)?;
    if validate {
        coo.check_sorted()?;
    } else if coo.each_index().any(|index| !coo.contains(index)) {
        return Err(invalid!("Indices are not valid (out of bounds).  Shape: {shape}"));
    }
    let mut dense = Tensor::scratch_of(values.dtype(), shape)?;
    for_units!(values.dtype(), E => {
        place(&coo, E::of(&values)?, E::of(&default)?, E::of_mut(&mut dense)?);
    });
    Ok(outputs![dense])
}

fn check_shapes(indices: &Tensor, shape: &Tensor, values: &Tensor, default: &Tensor) -> Result<(usize, usize)> {
    if indices.shape().rank() > 2 {
        return Err(invalid!("sparse_indices should be a scalar, vector, or matrix, got shape {}", indices.shape()));
    }
    let count = indices.shape().first().copied().unwrap_or(1);
    let rank = indices.shape().get(1).copied().unwrap_or(1);
    if shape.shape().rank() != 1 {
        return Err(invalid!("output_shape must be rank 1, got shape {}", shape.shape()));
    }
    if shape.elements() != rank {
        return Err(invalid!("output_shape has incorrect number of elements: {} should be: {rank}", shape.elements()));
    }
    if values.shape().rank() != 0 && values.shape().dims() != [count] {
        return Err(invalid!("sparse_values has incorrect shape {}, should be [] or [{count}]", values.shape()));
    }
    if default.shape().rank() != 0 {
        return Err(invalid!("default_value should be a scalar."));
    }
    Ok((count, rank))
}

/// A single value is written everywhere, several are written one by one.
fn place<E: Unit>(coo: &Coo<'_>, values: &[E], default: &[E], dense: &mut [E]) {
    dense.fill(default[0].clone());
    for (number, index) in coo.each_index().enumerate() {
        let value = values.get(number).unwrap_or(&values[0]);
        dense[coo.flat(index)] = value.clone();
    }
}
