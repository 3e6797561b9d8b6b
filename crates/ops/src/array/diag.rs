//! Diag and DiagPart: a tensor as the diagonal of one with twice its axes, and back.

use super::index::shape_of;
use super::nodes;
use super::units::Unit;
use graph::{Node, Output};
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, ShapeQuery, grads, unary};
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Diag(diagonal: T) -> output: T; T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
        shape: diag_shape,
        grad: Grad::Rule(|_: &Node, dy: &Output| -> Result<Grads> { Ok(grads![diag_part(dy)]) }),
        kernel: diag_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DiagPart(input: T) -> diagonal: T; T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
        shape: diag_part_shape,
        grad: Grad::Rule(|_: &Node, dy: &Output| -> Result<Grads> { Ok(grads![diag(dy)]) }),
        kernel: diag_part_kernel,
        facts: PLAIN,
    },
];

/// `diagonal` on the diagonal of a tensor with twice its axes, zeros elsewhere.
pub fn diag(diagonal: &Output) -> Output {
    nodes::one("Diag", diagonal)
}

/// The diagonal of a tensor whose list of axes repeats itself.
pub fn diag_part(input: &Output) -> Output {
    nodes::one("DiagPart", input)
}

fn diag_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    match query.inputs[0].dims() {
        Some([]) => Err(invalid!("Shape must be at least rank 1 but is rank 0")),
        Some(dims) => Ok(vec![PartialShape::new(&[dims, dims].concat())]),
        None => Ok(vec![PartialShape::unknown()]),
    }
}

fn diag_part_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    if dims.len() % 2 != 0 || dims.is_empty() {
        return Err(invalid!("Input must have even and non-zero rank, input rank is {}", dims.len()));
    }
    let (first, second) = dims.split_at(dims.len() / 2);
    Ok(vec![PartialShape::new(first).merge(&PartialShape::new(second))?])
}

fn diag_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, diagonal| {
        let dims = diagonal.shape();
        if dims.rank() == 0 {
            return Err(invalid!("Input must be at least rank 1, got 0"));
        }
        let mut output = Tensor::zeros_of(diagonal.dtype(), shape_of(&[dims, dims])?)?;
        for_units!(diagonal.dtype(), E => {
            let diagonal = E::of(&diagonal)?;
            copy(diagonal, E::of_mut(&mut output)?.iter_mut().step_by(diagonal.len() + 1));
        });
        Ok(output)
    })
    .heavy())
}

fn diag_part_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, input| {
        let dims = input.shape();
        if dims.rank() % 2 != 0 || dims.rank() == 0 {
            return Err(invalid!("The rank of the tensor should be even and positive, got shape {dims}"));
        }
        let half = dims.rank() / 2;
        if let Some(axis) = (0..half).find(|&axis| dims[axis] != dims[axis + half]) {
            return Err(invalid!("Invalid shape {dims}: dimensions {axis} and {} do not match.", axis + half));
        }
        let mut output = Tensor::scratch_of(input.dtype(), &dims[..half])?;
        for_units!(input.dtype(), E => {
            let diagonal = E::of_mut(&mut output)?;
            let step = diagonal.len() + 1;
            copy(E::of(&input)?.iter().step_by(step), diagonal);
        });
        Ok(output)
    }))
}

fn copy<'a, E: Unit>(from: impl IntoIterator<Item = &'a E>, to: impl IntoIterator<Item = &'a mut E>) {
    to.into_iter().zip(from).for_each(|(to, from)| *to = from.clone());
}
