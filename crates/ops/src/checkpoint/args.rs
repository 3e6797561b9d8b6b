//! The arguments of checkpoint ops: names, shapes, slices.

use io::TensorSlice;
use io::slice::parse_shape_and_slice;
use status::{Result, invalid};
use tensor::{Shape, Tensor};

/// The strings of a vector.
pub(super) fn strings(tensor: &Tensor) -> Result<Vec<String>> {
    Ok(tensor.strings()?.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect())
}

/// The one string of a tensor of one element.
pub(super) fn prefix(tensor: &Tensor) -> Result<String> {
    match tensor.elements() {
        1 => Ok(strings(tensor)?.swap_remove(0)),
        count => Err(invalid!("Input prefix should have a single element, got {count} instead.")),
    }
}

/// The one string of a tensor of one element, for ops of the first format.
pub(super) fn file(tensor: &Tensor, what: &str) -> Result<String> {
    match tensor.elements() {
        1 => Ok(strings(tensor)?.swap_remove(0)),
        count => Err(invalid!("Input 0 ({what}) must be a string scalar; got a tensor of {count} elements")),
    }
}

/// Names and slices that go together; an empty slice means the whole tensor.
pub(super) fn named_slices(names: &Tensor, slices: &Tensor) -> Result<Vec<(String, String)>> {
    if names.shape().rank() != 1 || slices.shape().rank() != 1 {
        return Err(invalid!(
            "Input tensor_names and shape_and_slices should be an 1-D tensors, got {} and {} instead.",
            names.shape(),
            slices.shape()
        ));
    }
    if names.elements() != slices.elements() {
        return Err(invalid!(
            "tensor_names and shape_and_slices have different number of elements: {} vs. {}",
            names.elements(),
            slices.elements()
        ));
    }
    Ok(strings(names)?.into_iter().zip(strings(slices)?).collect())
}

/// The slice that a tensor to save is, and the shape of the whole.
pub(super) fn slice_of(text: &str, found: &Shape) -> Result<(Shape, TensorSlice)> {
    let (shape, slice, part) = parse_shape_and_slice(text)?;
    if part != *found {
        return Err(invalid!(
            "Slice in shape_and_slice specification does not match the shape of the tensor to  save: {text}, tensor: {found}"
        ));
    }
    Ok((shape, slice))
}
