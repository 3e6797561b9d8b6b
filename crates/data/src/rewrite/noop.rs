//! Datasets that change nothing.

use super::of_kind;
use crate::DatasetRef;
use crate::transformations::map::Map;
use crate::transformations::parallel_map::ParallelMap;
use crate::transformations::repeat::Repeat;
use crate::transformations::shard::Shard;
use crate::transformations::skip::Skip;
use crate::transformations::take::Take;

/// The input of a dataset that has the same elements.
pub(super) fn eliminated(dataset: &DatasetRef) -> Option<DatasetRef> {
    is_noop(dataset).then(|| dataset.inputs().pop()).flatten()
}

fn is_noop(dataset: &DatasetRef) -> bool {
    of_kind::<Take>(dataset).is_some_and(Take::takes_all)
        || of_kind::<Skip>(dataset).is_some_and(Skip::skips_none)
        || of_kind::<Repeat>(dataset).is_some_and(Repeat::is_once)
        || of_kind::<Shard>(dataset).is_some_and(Shard::is_whole)
        || of_kind::<Map>(dataset).is_some_and(|map| map.function.is_identity())
        || of_kind::<ParallelMap>(dataset).is_some_and(|map| map.function.is_identity())
}
