//! Reads the small tensors that are arguments of ops: axes, sizes, shapes.

use op::shapes::integers;
use status::{Result, invalid};
use tensor::{Shape, Tensor};

/// The shape in a tensor of dimensions.
pub(crate) fn to_shape(dims: &Tensor) -> Result<Shape> {
    let dims = integers(dims)?;
    match dims.iter().find(|&&dim| dim < 0) {
        Some(dim) => Err(invalid!("Dimension {dim} must be >= 0")),
        None => Shape::checked(&dims),
    }
}

/// The axis that a number means, counted from the end if it is negative.
pub(crate) fn to_axis(number: i64, rank: usize) -> Option<usize> {
    let axis = if number < 0 { number.checked_add(rank as i64)? } else { number };
    usize::try_from(axis).ok().filter(|&axis| axis < rank)
}

/// The one integer of a tensor that has exactly one.
pub(crate) fn to_integer(tensor: &Tensor) -> Result<i64> {
    match integers(tensor)?.as_slice() {
        [value] => Ok(*value),
        values => Err(invalid!("Expected one integer, got {} (shape {})", values.len(), tensor.shape())),
    }
}

/// How many elements lie before an axis, on it, and after it.
pub(crate) fn around(shape: &Shape, axis: usize) -> [usize; 3] {
    [shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product()]
}
