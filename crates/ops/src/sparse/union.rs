//! Iterates over the union of the coordinates of two sorted sparse tensors.

use super::coo::{Coo, index_tensor};
use crate::array::index::joined;
use status::{Result, invalid};
use std::cmp::Ordering;
use tensor::Tensor;

/// The values at a coordinate of the union: their numbers on either side.
pub(super) type Met = (Option<usize>, Option<usize>);

/// The places that either side has, in order; both are sorted.
pub(super) fn union(a: &Coo<'_>, b: &Coo<'_>) -> Vec<Met> {
    let (mut i, mut j) = (0, 0);
    let mut met = Vec::with_capacity(a.count().max(b.count()));
    while i < a.count() && j < b.count() {
        let order = a.index(i).cmp(b.index(j));
        met.push((order.is_le().then_some(i), order.is_ge().then_some(j)));
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
    }
    met.extend((i..a.count()).map(|i| (Some(i), None)));
    met.extend((j..b.count()).map(|j| (None, Some(j))));
    met
}

/// The coordinates of these places.
pub(super) fn indices_of(a: &Coo<'_>, b: &Coo<'_>, met: &[Met]) -> Result<Tensor> {
    let index = |place: &Met| match *place {
        (Some(i), _) => a.index(i),
        (None, j) => b.index(j.unwrap_or_default()),
    };
    let rows: Vec<i64> = met.iter().flat_map(index).copied().collect();
    index_tensor(&rows, met.len(), a.rank())
}

/// An error unless both have the same dense shape, of at least one dimension.
pub(super) fn check_same_shape(a: &[i64], b: &[i64]) -> Result<()> {
    if a.len() != b.len() {
        return Err(invalid!(
            "Operands do not have the same ranks; got shapes: {} and {}",
            joined(a, " "),
            joined(b, " ")
        ));
    }
    match (0..a.len()).find(|&axis| a[axis] != b[axis]) {
        Some(axis) => {
            Err(invalid!("Operands' shapes do not match: got {} and {} for dimension {axis}", a[axis], b[axis]))
        }
        None => Ok(()),
    }
}
