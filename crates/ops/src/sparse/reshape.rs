//! SparseReshape: the same values in another dense shape.

use crate::array::index::joined;
use graph::Output;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseReshape(input_indices: int64, input_shape: int64, new_shape: int64) -> output_indices: int64, \
          output_shape: int64",
    shape: reshape_shape,
    grad: Grad::Stop,
    kernel,
    facts: PLAIN,
}];

/// Indices of the same values under `new_shape`, of which one dimension may be -1, and that shape.
pub fn sparse_reshape(indices: &Output, shape: &Output, new_shape: &Output) -> (Output, Output) {
    let node = indices.scope().op("SparseReshape").input(indices).input(shape).input(new_shape).node();
    (node.output(0), node.output(1))
}

fn reshape_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let indices = query.inputs[0].merge(&PartialShape::of_rank(2))?;
    let new_shape = query.inputs[2].merge(&PartialShape::of_rank(1))?;
    let rank = new_shape.dims().map_or(-1, |dims| dims[0]);
    Ok(vec![PartialShape::new(&[indices.dims().map_or(-1, |dims| dims[0]), rank]), new_shape])
}

fn kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, inputs| run(inputs)))
}

fn run(mut inputs: Inputs) -> Result<Outputs> {
    let (indices, shape, target) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let &[count, rank] = indices.shape().dims() else { return Err(invalid!("Input must be a matrix.")) };
    if shape.shape().rank() != 1 {
        return Err(invalid!("Input shape must be a vector."));
    }
    if rank != shape.elements() {
        return Err(invalid!("Input tensor rank must match input shape length."));
    }
    if target.shape().rank() != 1 {
        return Err(invalid!("Target shape should be a vector but received shape {}", target.shape()));
    }
    let from = Shape::checked(shape.values::<i64>()?)?;
    let to = target_shape(&from, target.values::<i64>()?)?;
    if from == to {
        return Ok(outputs![indices, shape]);
    }
    if count > 0 && from.elements() == 0 {
        return Err(invalid!(
            "Input tensor has {count} non zero elements but input shape ({from}) or output shape ({to}) is empty"
        ));
    }
    let mut moved = Tensor::scratch::<i64>([count, to.rank()])?;
    let places = moved.values_mut::<i64>()?;
    let indices = indices.values::<i64>()?;
    for number in 0..count {
        let mut flat = flat_place(&indices[number * rank..][..rank], &from)?;
        for (at, &dim) in places[number * to.rank()..][..to.rank()].iter_mut().zip(to.iter()).rev() {
            *at = (flat % dim) as i64;
            flat /= dim;
        }
    }
    Ok(outputs![moved, Tensor::vector(&to.to_i64())])
}

fn flat_place(index: &[i64], shape: &Shape) -> Result<usize> {
    let mut flat = 0;
    for (&at, &dim) in index.iter().zip(shape.iter()) {
        match usize::try_from(at) {
            Ok(at) if at < dim => flat = flat * dim + at,
            _ => return Err(invalid!("Sparse index [{}] is out of bounds of shape {shape}", joined(index, ","))),
        }
    }
    Ok(flat)
}

/// The shape that was asked for, with its one unknown dimension found.
fn target_shape(from: &Shape, target: &[i64]) -> Result<Shape> {
    let dense = from.elements() as i64;
    let (mut unknown, mut product) = (None, 1_i64);
    for (axis, &size) in target.iter().enumerate() {
        match (size, unknown) {
            (-1, Some(other)) => {
                return Err(invalid!("only one output dimension may be -1, not both {other} and {axis}"));
            }
            (-1, None) => unknown = Some(axis),
            (size, _) if size < 0 => return Err(invalid!("size {axis} must be non-negative, not {size}")),
            (size, _) => {
                product = product.checked_mul(size).ok_or_else(|| {
                    invalid!("Encountered overflow when multiplying {product} with {size}, result: -1")
                })?;
            }
        }
    }
    let mut dims: Vec<i64> = target.iter().map(|&size| if size == -1 { 1 } else { size }).collect();
    if let Some(axis) = unknown {
        if product == 0 {
            return Err(invalid!(
                "reshape cannot infer the missing input size for an empty tensor unless all specified input sizes are non-zero"
            ));
        }
        if dense % product != 0 {
            return Err(invalid!(
                "Input to reshape is a SparseTensor with {dense} dense values, but the requested shape requires a multiple \
                 of {product}. input_shape={from} output_shape=[{}]",
                joined(&dims, ",")
            ));
        }
        dims[axis] = dense / product;
    }
    let to = Shape::checked(&dims)?;
    if to.elements() as i64 != dense {
        return Err(invalid!(
            "Input to reshape is a tensor with {dense} dense values, but the requested shape has {}. \
             input_shape={from} output_shape={to}",
            to.elements()
        ));
    }
    Ok(to)
}
