//! One dataset in place of two.

use super::of_kind;
use crate::transformations::batch::Batch;
use crate::transformations::filter::Filter;
use crate::transformations::map::Map;
use crate::transformations::map_and_batch::MapAndBatch;
use crate::transformations::parallel_map::ParallelMap;
use crate::transformations::repeat::Repeat;
use crate::transformations::shuffle::Shuffle;
use crate::{DatasetRef, Function};
use std::sync::Arc;

/// A shuffle that repeats, in place of a shuffle that is repeated. It fills its buffer with elements of the next
/// repetition while it empties it of those of the last one.
pub(super) fn repeated_shuffle(dataset: &DatasetRef) -> Option<DatasetRef> {
    let repeat = of_kind::<Repeat>(dataset)?;
    of_kind::<Shuffle>(&repeat.input)?.repeated(repeat.count)
}

/// A map with both functions in place of a map of a map.
pub(super) fn map(dataset: &DatasetRef) -> Option<DatasetRef> {
    if let Some(map) = of_kind::<Map>(dataset) {
        let first = of_kind::<Map>(&map.input)?;
        let function = Function::chain(&first.function, &map.function)?;
        return Some(Arc::new(Map {
            input: first.input.clone(),
            function,
            preserves_cardinality: first.preserves_cardinality && map.preserves_cardinality,
            ..map.clone()
        }));
    }
    let map = of_kind::<ParallelMap>(dataset)?;
    let first = of_kind::<ParallelMap>(&map.input)?;
    if !(map.is_fusible() && first.is_fusible() && map.may_keep_order() == first.may_keep_order()) {
        return None;
    }
    let function = Function::chain(&first.function, &map.function)?;
    Some(Arc::new(ParallelMap {
        function,
        preserves_cardinality: first.preserves_cardinality && map.preserves_cardinality,
        spec: map.spec.clone(),
        ..first.clone()
    }))
}

/// A filter with both predicates in place of a filter of a filter. The second is called for elements that pass the first.
pub(super) fn filter(dataset: &DatasetRef) -> Option<DatasetRef> {
    let filter = of_kind::<Filter>(dataset)?;
    let first = of_kind::<Filter>(&filter.input)?;
    let predicate = Function::conjunction(&first.predicate, &filter.predicate)?;
    Some(Arc::new(Filter { input: first.input.clone(), predicate }))
}

/// A map that calls the predicate too, in place of a map that is filtered. The result of the predicate is one more
/// component, by which elements are filtered, and which is dropped then.
pub(super) fn map_and_filter(dataset: &DatasetRef) -> Option<DatasetRef> {
    let filter = of_kind::<Filter>(dataset)?;
    if let Some(map) = of_kind::<Map>(&filter.input) {
        let function = Function::with_predicate(&map.function, &filter.predicate)?;
        let spec = map.spec.with_truth();
        let fused = Arc::new(Map { function, spec, is_synchronous: false, ..map.clone() });
        return Some(filtered(fused, map.spec.clone(), map.preserves_cardinality));
    }
    let map = of_kind::<ParallelMap>(&filter.input)?;
    if map.kind != ParallelMap::FIRST_KIND {
        return None;
    }
    let function = Function::with_predicate(&map.function, &filter.predicate)?;
    let fused = Arc::new(ParallelMap { function, spec: map.spec.with_truth(), ..map.clone() });
    Some(filtered(fused, map.spec.clone(), map.preserves_cardinality))
}

/// The elements whose last component is true, without that component.
fn filtered(fused: DatasetRef, spec: crate::Spec, preserves_cardinality: bool) -> DatasetRef {
    let filter = Arc::new(Filter { input: fused, predicate: Function::last() });
    let function = Function::all_but_last();
    Arc::new(Map { input: filter, function, preserves_cardinality, is_synchronous: false, spec })
}

/// A dataset that maps and joins elements, in place of batches of a map.
pub(super) fn map_and_batch(dataset: &DatasetRef) -> Option<DatasetRef> {
    let batch = of_kind::<Batch>(dataset)?;
    let (input, function, calls, preserves_cardinality) = match of_kind::<Map>(&batch.input) {
        Some(map) => (&map.input, &map.function, Some(1), map.preserves_cardinality),
        None => {
            let map = of_kind::<ParallelMap>(&batch.input).filter(|map| !map.is_unbounded)?;
            (&map.input, &map.function, map.calls, map.preserves_cardinality)
        }
    };
    Some(Arc::new(MapAndBatch {
        input: input.clone(),
        function: function.clone(),
        size: batch.size,
        calls,
        drops_remainder: batch.drops_remainder,
        preserves_cardinality,
        spec: batch.spec.clone(),
    }))
}
