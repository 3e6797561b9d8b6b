//! A sparse tensor as three dense ones: rows of indices, values, and the dense shape.

use crate::array::index::joined;
use status::{Result, invalid};
use std::cmp::Ordering;
use tensor::{Shape, Tensor};

/// A sparse tensor whose parts are consistent; its indices are checked only on request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coo<'a> {
    /// Coordinates, `rank` for each value.
    pub indices: &'a [i64],
    /// The values.
    pub values: &'a Tensor,
    /// The dense shape.
    pub dims: &'a [i64],
}

impl<'a> Coo<'a> {
    /// The three parts, if they fit each other.
    pub(crate) fn new(indices: &'a Tensor, values: &'a Tensor, shape: &'a Tensor) -> Result<Coo<'a>> {
        let &[count, rank] = indices.shape().dims() else {
            return Err(invalid!("Sparse indices must be rank 2 but is rank {}", indices.shape().rank()));
        };
        if values.shape().rank() != 1 {
            return Err(invalid!("Sparse values must be rank 1 but is rank {}", values.shape().rank()));
        }
        if shape.shape().rank() != 1 {
            return Err(invalid!("Sparse shape must be rank 1 but is rank {}", shape.shape().rank()));
        }
        if values.elements() != count {
            return Err(invalid!(
                "Number of elements in indices ({count}) and values ({}) do not match",
                values.elements()
            ));
        }
        if shape.elements() != rank {
            return Err(invalid!("Index rank ({rank}) and shape rank ({}) do not match", shape.elements()));
        }
        Ok(Coo { indices: indices.values::<i64>()?, values, dims: shape.values::<i64>()? })
    }

    /// The number of dimensions.
    pub(crate) fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The number of values.
    pub(crate) fn count(&self) -> usize {
        self.values.elements()
    }

    /// The coordinates of value `number`.
    pub(crate) fn index(&self, number: usize) -> &'a [i64] {
        &self.indices[number * self.rank()..][..self.rank()]
    }

    /// The coordinates of all values.
    pub(crate) fn each_index(&self) -> impl Iterator<Item = &'a [i64]> + use<'a> {
        let coo = *self;
        (0..self.count()).map(move |number| coo.index(number))
    }

    /// The dense shape, if there can be such a tensor.
    pub(crate) fn shape(&self) -> Result<Shape> {
        Shape::checked(self.dims)
    }

    /// Whether coordinates lie inside the dense shape.
    pub(crate) fn contains(&self, index: &[i64]) -> bool {
        index.iter().zip(self.dims).all(|(&at, &dim)| 0 <= at && at < dim)
    }

    /// An error unless all coordinates lie inside the dense shape.
    pub(crate) fn check_inside(&self) -> Result<()> {
        match self.each_index().position(|index| !self.contains(index)) {
            Some(number) => Err(invalid!("Sparse index tuple {} is out of bounds", self.name(number))),
            None => Ok(()),
        }
    }

    /// An error unless all coordinates lie inside the dense shape and rise from one to the next.
    pub(crate) fn check_sorted(&self) -> Result<()> {
        for number in 0..self.count() {
            let index = self.index(number);
            let name = || format!("indices[{number}] = [{}]", joined(index, ","));
            if !self.contains(index) {
                let dims = joined(self.dims, ",");
                return Err(invalid!("{} is out of bounds: need 0 <= index < [{dims}]", name()));
            }
            match number.checked_sub(1).map(|before| index.cmp(self.index(before))) {
                Some(Ordering::Less) => {
                    return Err(invalid!(
                        "{} is out of order. Many sparse ops require sorted indices.\n    \
                         Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n",
                        name()
                    ));
                }
                Some(Ordering::Equal) => return Err(invalid!("{} is repeated", name())),
                _ => {}
            }
        }
        Ok(())
    }

    fn name(&self, number: usize) -> String {
        format!("indices[{number}, :] = [{}]", joined(self.index(number), ", "))
    }

    /// The place of coordinates that lie inside, counted over a dense tensor.
    pub(crate) fn flat(&self, index: &[i64]) -> usize {
        index.iter().zip(self.dims).fold(0, |flat, (&at, &dim)| flat * dim as usize + at as usize)
    }
}

/// Rows of coordinates as a tensor.
pub(crate) fn index_tensor(indices: &[i64], count: usize, rank: usize) -> Result<Tensor> {
    Tensor::from_slice([count, rank], indices)
}

/// The order that sorts rows of coordinates; it is stable.
pub(crate) fn sorted_order<'a>(count: usize, index: impl Fn(usize) -> &'a [i64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| index(a).cmp(index(b)));
    order
}
