//! Calls functions for several elements at once, in the order of the elements.

use super::of_kind;
use crate::DatasetRef;
use crate::transformations::batch::Batch;
use crate::transformations::filter::Filter;
use crate::transformations::map::Map;

/// A parallel map in place of a map whose function has no effect but its results.
pub(super) fn map(dataset: &DatasetRef) -> Option<DatasetRef> {
    let map = of_kind::<Map>(dataset)?;
    (!map.is_synchronous && !map.function.is_stateful()).then(|| map.parallel())
}

/// A parallel filter in place of a filter whose predicate has no effect but its result.
pub(super) fn filter(dataset: &DatasetRef) -> Option<DatasetRef> {
    let filter = of_kind::<Filter>(dataset)?;
    (!filter.predicate.is_stateful()).then(|| filter.parallel())
}

/// A dataset that makes several batches at once in place of one that makes one at a time.
pub(super) fn batch(dataset: &DatasetRef) -> Option<DatasetRef> {
    of_kind::<Batch>(dataset)?.parallel()
}
