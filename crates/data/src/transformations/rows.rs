//! Rows of tensors: what is at one position of the first dimension.

use status::{Result, internal, invalid};
use std::ops::Range;
use tensor::{PartialShape, Shape, Tensor};

/// Row `index`; it shares the memory of the tensor where possible.
pub(crate) fn row(tensor: &Tensor, index: usize) -> Result<Tensor> {
    let Some((&count, dims)) = tensor.shape().dims().split_first() else {
        return Err(invalid!("A scalar has no rows"));
    };
    if index >= count {
        return Err(invalid!("There is no row {index} in a tensor of shape {}", tensor.shape()));
    }
    tensor.slice_elements(index * (tensor.elements() / count), Shape::new(dims))
}

/// The shape of rows.
pub(crate) fn row_shape(shape: &PartialShape) -> PartialShape {
    shape.dims().map_or(PartialShape::unknown(), |dims| PartialShape::new(dims.get(1..).unwrap_or_default()))
}

/// Rows `range` as a tensor; it shares the memory where possible.
pub(crate) fn row_range(tensor: &Tensor, range: Range<usize>) -> Result<Tensor> {
    let Some((&count, dims)) = tensor.shape().dims().split_first() else {
        return Err(invalid!("A scalar has no rows"));
    };
    if range.start > range.end || range.end > count {
        return Err(invalid!("There are no rows {range:?} in a tensor of shape {}", tensor.shape()));
    }
    let shape: Shape = std::iter::once(range.len()).chain(dims.iter().copied()).collect();
    tensor.slice_elements(range.start * (tensor.elements() / count.max(1)), shape)
}

/// The rows of all tensors as one.
pub(crate) fn joined(parts: &[Tensor]) -> Result<Tensor> {
    let Some(first) = parts.first() else { return Err(internal!("Cannot join rows: there are no tensors")) };
    let row = first.shape().dims().get(1..).unwrap_or_default();
    let fits = |part: &&Tensor| part.dtype() == first.dtype() && part.shape().dims().get(1..) == Some(row);
    if let Some(other) = parts.iter().find(|part| !fits(part)) {
        return Err(invalid!("Rows of {} and {} cannot be joined", first.shape(), other.shape()));
    }
    let count = parts.iter().map(|part| part.shape().dims()[0]).sum();
    let shape: Shape = std::iter::once(count).chain(row.iter().copied()).collect();
    if first.strings().is_ok() {
        return Tensor::from_strings(shape, parts.iter().map(Tensor::strings).collect::<Result<Vec<_>>>()?.concat());
    }
    if first.variants().is_ok() {
        return Tensor::from_variants(shape, parts.iter().map(Tensor::variants).collect::<Result<Vec<_>>>()?.concat());
    }
    joined_plain(parts, shape)
}

fn joined_plain(parts: &[Tensor], shape: Shape) -> Result<Tensor> {
    let mut whole = Tensor::scratch_of(parts[0].dtype(), shape)?;
    let mut free = whole.bytes_mut()?;
    for part in parts {
        let bytes = part.buffer().ok_or_else(|| internal!("tensors without plain elements cannot be joined"))?.bytes();
        let (slot, rest) = free.split_at_mut(bytes.len());
        slot.copy_from_slice(bytes);
        free = rest;
    }
    Ok(whole)
}

/// An error unless all components have rows, and equally many. The number of rows.
pub(crate) fn batch_size(batch: &[Tensor]) -> Result<usize> {
    let mut size = None;
    for (index, component) in batch.iter().enumerate() {
        let Some(&found) = component.shape().dims().first() else {
            return Err(invalid!("Input element must have a non-scalar value in each component."));
        };
        let first = *size.get_or_insert(found);
        if found != first {
            return Err(invalid!(
                "Input element must have the same batch size in each component. Component 0 had size {first} but \
                 component {index} had size, {found}."
            ));
        }
    }
    Ok(size.unwrap_or(0))
}
