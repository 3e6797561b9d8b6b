//! Rows of tensors: what is at one position of the first dimension.

use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

/// Row `index`; it shares the memory of the tensor where possible.
pub(crate) fn row(tensor: &Tensor, index: usize) -> Result<Tensor> {
    let Some((&count, dims)) = tensor.shape().dims().split_first() else {
        return Err(invalid!("A scalar has no rows"));
    };
    if index >= count {
        return Err(invalid!("There is no row {index} in a tensor of shape {}", tensor.shape()));
    }
    tensor.slice_elements(index * (tensor.elements() / count), tensor::Shape::new(dims))
}

/// The shape of rows.
pub(crate) fn row_shape(shape: &PartialShape) -> PartialShape {
    shape.dims().map_or(PartialShape::unknown(), |dims| PartialShape::new(dims.get(1..).unwrap_or_default()))
}
