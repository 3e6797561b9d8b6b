//! Batches tensors of one rank by padding each with zeros to a common size.

use crate::array::units::Unit;
use status::{Result, internal};
use tensor::{DType, Shape, Tensor};

/// `parts` along the first dimension of `shape`; the others are at least as large as those of every part.
pub(crate) fn padded(dtype: DType, shape: Shape, parts: &[Tensor]) -> Result<Tensor> {
    let fits = |part: &Tensor| {
        part.dtype() == dtype
            && part.shape().rank() + 1 == shape.rank()
            && part.shape().iter().zip(&shape[1..]).all(|(size, room)| size <= room)
    };
    if let Some(part) = parts.iter().find(|part| !fits(part)) {
        return Err(internal!("{part:?} does not fit into a batch of shape {shape}"));
    }
    let mut out = Tensor::zeros_of(dtype, &shape)?;
    let room = Shape::new(&shape[1..]);
    for_units!(dtype, E => {
        let chunk = room.elements();
        for (index, part) in parts.iter().enumerate() {
            let place = E::of_mut(&mut out)?.get_mut(index * chunk..(index + 1) * chunk).unwrap_or_default();
            copy(E::of(part)?, part.shape(), place, &room);
        }
    });
    Ok(out)
}

/// Copies a block into the corner of a larger one, run by run.
fn copy<E: Unit>(src: &[E], shape: &Shape, dst: &mut [E], room: &Shape) {
    let Some((&run, _)) = shape.split_last() else {
        dst.clone_from_slice(src);
        return;
    };
    if src.is_empty() {
        return;
    }
    let strides = room.strides();
    for (index, values) in src.chunks(run).enumerate() {
        let mut rest = index;
        let mut start = 0;
        for axis in (0..shape.rank() - 1).rev() {
            start += rest % shape[axis] * strides[axis];
            rest /= shape[axis];
        }
        dst[start..start + run].clone_from_slice(values);
    }
}
