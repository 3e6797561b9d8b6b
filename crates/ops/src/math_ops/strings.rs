//! The few binary ops that take strings: `Add`, `Equal`, `NotEqual`.

use super::kernels::broadcast_shape;
use op::{Kernel, binary};
use status::Result;
use tensor::{Bytes, Shape, Tensor};

/// A kernel that puts the strings of two broadcast tensors one after the other.
pub(super) fn concatenating() -> Kernel {
    binary(|_, x, y| {
        let (x_values, y_values) = (x.strings()?, y.strings()?);
        let (shape, pairs) = meeting(&x, &y)?;
        let joined = pairs.map(|(i, j)| Bytes::from([&x_values[i][..], &y_values[j][..]].concat())).collect();
        Tensor::from_strings(shape, joined)
    })
}

/// A kernel that compares the strings of two broadcast tensors with `test`.
pub(super) fn comparing(test: fn(&[u8], &[u8]) -> bool, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let (x_values, y_values) = (x.strings()?, y.strings()?);
    let (shape, pairs) = meeting(x, y)?;
    let results: Vec<bool> = pairs.map(|(i, j)| test(&x_values[i], &y_values[j])).collect();
    Tensor::from_slice(shape, &results)
}

/// The common shape of two tensors, and which elements of them meet at each place of it.
fn meeting(x: &Tensor, y: &Tensor) -> Result<(Shape, impl Iterator<Item = (usize, usize)>)> {
    let shape = broadcast_shape(x.shape(), y.shape())?;
    shape.checked_elements()?;
    let pairs = places(x.shape(), &shape).zip(places(y.shape(), &shape));
    Ok((shape, pairs))
}

/// Which element of a tensor of shape `part` is at each place of `whole`, which it broadcasts to.
pub(super) fn places(part: &Shape, whole: &Shape) -> impl Iterator<Item = usize> + use<> {
    let mut steps = vec![0; whole.rank()];
    let skipped = whole.rank() - part.rank();
    let mut step: usize = 1;
    for axis in (0..part.rank()).rev() {
        if part[axis] != 1 {
            steps[skipped + axis] = step;
            step = step.saturating_mul(part[axis]);
        }
    }
    let dims = whole.clone();
    (0..whole.elements()).map(move |index| place(index, &dims, &steps))
}

fn place(mut index: usize, dims: &[usize], steps: &[usize]) -> usize {
    let mut place = 0;
    for (&dim, &step) in dims.iter().zip(steps).rev() {
        place += index % dim * step;
        index /= dim;
    }
    place
}
