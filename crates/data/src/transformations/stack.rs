//! Stacks elements of equal shape along a new first dimension.

use crate::Element;
use smallvec::SmallVec;
use status::{Result, internal, invalid};
use tensor::{Shape, Tensor};

/// The elements as one, whose components have one dimension more.
pub(crate) fn stacked(elements: Vec<Element>) -> Result<Element> {
    let components = elements.first().map_or(0, SmallVec::len);
    (0..components).map(|index| stacked_component(&elements, index)).collect()
}

fn stacked_component(elements: &[Element], index: usize) -> Result<Tensor> {
    let first = component(&elements[0], index)?;
    let shape: Shape = std::iter::once(elements.len()).chain(first.shape().iter().copied()).collect();
    for (number, element) in elements.iter().enumerate() {
        check(first, component(element, index)?, index, number)?;
    }
    let each = || elements.iter().map(|element| &element[index]);
    match () {
        _ if first.strings().is_ok() => {
            let parts = each().map(Tensor::strings).collect::<Result<Vec<_>>>()?;
            Tensor::from_strings(shape, parts.concat())
        }
        _ if first.variants().is_ok() => {
            let parts = each().map(Tensor::variants).collect::<Result<Vec<_>>>()?;
            Tensor::from_variants(shape, parts.concat())
        }
        _ if first.handles().is_ok() => {
            let parts = each().map(Tensor::handles).collect::<Result<Vec<_>>>()?;
            Tensor::from_handles(shape, parts.concat())
        }
        _ => stacked_plain(first, elements, index, shape),
    }
}

fn stacked_plain(first: &Tensor, elements: &[Element], index: usize, shape: Shape) -> Result<Tensor> {
    let mut batch = Tensor::scratch_of(first.dtype(), shape)?;
    let size = first.byte_size();
    if size > 0 {
        let slots = batch.bytes_mut()?.chunks_exact_mut(size);
        for (slot, element) in slots.zip(elements) {
            let buffer = element[index].buffer().ok_or_else(|| internal!("component {index} has no plain elements"))?;
            slot.copy_from_slice(buffer.bytes());
        }
    }
    Ok(batch)
}

fn component(element: &Element, index: usize) -> Result<&Tensor> {
    element.get(index).ok_or_else(|| invalid!("An element of the batch has no component {index}"))
}

fn check(first: &Tensor, other: &Tensor, index: usize, number: usize) -> Result<()> {
    if other.dtype() != first.dtype() {
        return Err(invalid!(
            "Cannot batch tensors with different types in component {index}. First element had type {} and element \
             {number} had type {}.",
            first.dtype(),
            other.dtype()
        ));
    }
    if other.shape() != first.shape() {
        return Err(invalid!(
            "Cannot batch tensors with different shapes in component {index}. First element had shape {} and element \
             {number} had shape {}.",
            first.shape(),
            other.shape()
        ));
    }
    Ok(())
}
