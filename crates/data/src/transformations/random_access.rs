//! Checks of positions for random access.

use crate::{Cardinality, Dataset};
use status::{Result, failed_precondition, out_of_range};

/// An error if a dataset has no element at a position. Errors call the dataset `name`.
pub(crate) fn check_index(dataset: &dyn Dataset, name: &str, index: usize) -> Result<()> {
    let how_many = match dataset.cardinality() {
        Cardinality::Finite(count) if (index as u64) < count => return Ok(()),
        Cardinality::Finite(count) => return Err(out_of_range!("Index out of range [0, {count}):{index}")),
        Cardinality::Infinite => "infinite",
        Cardinality::Unknown => "unknown",
    };
    Err(failed_precondition!(
        "Dataset of type {name}DatasetOp::Dataset has {how_many} cardinality, which does not support random access."
    ))
}
