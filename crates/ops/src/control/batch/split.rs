//! Tensors joined along their first dimension, and taken apart again.

use crate::array::concat::joined;
use op::Ctx;
use status::{Result, invalid};
use tensor::{Shape, Tensor};

/// Tensors one after the other along their first dimension.
pub(super) fn concat(ctx: &Ctx<'_>, parts: &[Tensor]) -> Result<Tensor> {
    let Some(first) = parts.first() else { return Err(invalid!("Empty batch.")) };
    let fits = |part: &Tensor| {
        part.dtype() == first.dtype()
            && part.shape().rank() == first.shape().rank()
            && part.shape().get(1..) == first.shape().get(1..)
    };
    if let Some(wrong) = parts.iter().find(|part| !fits(part)) {
        return Err(invalid!(
            "Dimensions of inputs should match: shape[0] = {} vs. shape = {}",
            first.shape(),
            wrong.shape()
        ));
    }
    let mut shape: Shape = first.shape().clone();
    let Some(rows) = shape.dims_mut().first_mut() else {
        return Err(invalid!("Batching input tensors must have at least one dimension."));
    };
    *rows = parts.iter().map(|part| part.shape()[0]).sum();
    joined(ctx.pool(), first.dtype(), shape, 0, parts)
}

/// The first rows, the next and so on, as many as each size says.
pub(super) fn split(tensor: &Tensor, sizes: &[usize]) -> Result<Vec<Tensor>> {
    let mut start = 0;
    sizes
        .iter()
        .map(|&size| {
            let part = rows(tensor, start, size);
            start += size;
            part
        })
        .collect()
}

/// Rows from `start` on.
pub(super) fn rows(tensor: &Tensor, start: usize, count: usize) -> Result<Tensor> {
    let mut shape: Shape = tensor.shape().clone();
    let Some(first) = shape.dims_mut().first_mut() else {
        return Err(invalid!("A tensor without dimensions has no rows"));
    };
    *first = 1;
    let width = shape.elements();
    shape.dims_mut()[0] = count;
    tensor.slice_elements(start.saturating_mul(width), shape)
}
