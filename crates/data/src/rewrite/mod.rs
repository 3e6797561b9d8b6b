//! Rewrites of a pipeline when an iterator begins, as TensorFlow makes them: the elements and their order stay.
//!
//! A rewrite replaces datasets by others, the inputs first. The states of iterators have the names of the rewritten
//! pipeline.

mod fusion;
mod noop;
mod parallel;

use crate::dataset::fold;
use crate::limits::stages_of;
use crate::transformations::prefetch;
use crate::{Dataset, DatasetRef};
use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A rewrite, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rewrite {
    /// Removes datasets that change nothing.
    NoopElimination,
    /// Repeats in the shuffle that is repeated.
    ShuffleAndRepeatFusion,
    /// Calls the functions of maps for several elements at once.
    MapParallelization,
    /// Joins maps of maps.
    MapFusion,
    /// Joins filters of filters.
    FilterFusion,
    /// Calls predicates together with the map before them.
    MapAndFilterFusion,
    /// Joins batches with the map before them.
    MapAndBatchFusion,
    /// Makes several batches at once.
    BatchParallelization,
    /// Calls predicates for several elements at once.
    FilterParallelization,
    /// Works ahead of the consumer.
    InjectPrefetch,
}

/// The most stages of a pipeline that has got more of them, for iterators call those of their inputs.
const MOST_GROWN: usize = 100;

/// Rewrites to make.
pub type Rewrites = BTreeSet<Rewrite>;

impl Rewrite {
    /// The rewrite with TensorFlow's name; none for other names, also of optimizations that have no effect here.
    pub fn named(name: &str) -> Option<Rewrite> {
        Some(match name {
            "noop_elimination" => Rewrite::NoopElimination,
            "shuffle_and_repeat_fusion" => Rewrite::ShuffleAndRepeatFusion,
            "map_parallelization" => Rewrite::MapParallelization,
            "map_fusion" => Rewrite::MapFusion,
            "filter_fusion" => Rewrite::FilterFusion,
            "map_and_filter_fusion" => Rewrite::MapAndFilterFusion,
            "map_and_batch_fusion" => Rewrite::MapAndBatchFusion,
            "batch_parallelization" => Rewrite::BatchParallelization,
            "filter_parallelization" => Rewrite::FilterParallelization,
            "inject_prefetch" => Rewrite::InjectPrefetch,
            _ => return None,
        })
    }

    /// True if it is made only where the runtime may choose how many calls run at once.
    pub fn needs_autotune(self) -> bool {
        use Rewrite::*;
        matches!(self, MapParallelization | MapFusion | BatchParallelization | FilterParallelization | InjectPrefetch)
    }

    /// True if it is not made in the datasets that functions return.
    fn is_of_main_pipeline(self) -> bool {
        use Rewrite::*;
        matches!(self, MapParallelization | BatchParallelization | FilterParallelization | InjectPrefetch)
    }

    /// What replaces a dataset, if the rewrite concerns it.
    fn replaced(self, dataset: &DatasetRef) -> Option<DatasetRef> {
        match self {
            Rewrite::NoopElimination => noop::eliminated(dataset),
            Rewrite::ShuffleAndRepeatFusion => fusion::repeated_shuffle(dataset),
            Rewrite::MapParallelization => parallel::map(dataset),
            Rewrite::MapFusion => fusion::map(dataset),
            Rewrite::FilterFusion => fusion::filter(dataset),
            Rewrite::MapAndFilterFusion => fusion::map_and_filter(dataset),
            Rewrite::MapAndBatchFusion => fusion::map_and_batch(dataset),
            Rewrite::BatchParallelization => parallel::batch(dataset),
            Rewrite::FilterParallelization => parallel::filter(dataset),
            Rewrite::InjectPrefetch => None, // concerns the whole pipeline
        }
    }

    fn applied(self, dataset: &DatasetRef) -> DatasetRef {
        if self == Rewrite::InjectPrefetch {
            return if works_ahead(dataset) { dataset.clone() } else { prefetch::chosen(dataset.clone()) };
        }
        let after = fold(dataset, &mut |dataset, inputs| {
            let same = with_rewritten(dataset, inputs);
            self.replaced(&same).unwrap_or(same)
        });
        let may_grow = self != Rewrite::MapAndFilterFusion || stages_of(&after) <= MOST_GROWN;
        if may_grow { after } else { dataset.clone() }
    }
}

/// The pipeline that an iterator of a dataset runs.
pub(crate) fn rewritten(dataset: &DatasetRef, rewrites: &Rewrites) -> DatasetRef {
    rewrites.iter().fold(dataset.clone(), |dataset, rewrite| rewrite.applied(&dataset))
}

/// As `rewritten`, for a dataset that a function returned: it works on one element at a time.
pub(crate) fn rewritten_nested(dataset: &DatasetRef, rewrites: &Rewrites) -> DatasetRef {
    if dataset.inputs().is_empty() {
        return dataset.clone();
    }
    let kept = rewrites.iter().filter(|rewrite| !rewrite.is_of_main_pipeline());
    kept.fold(dataset.clone(), |dataset, rewrite| rewrite.applied(&dataset))
}

/// The same transformation of rewritten inputs.
fn with_rewritten(dataset: &DatasetRef, inputs: Vec<DatasetRef>) -> DatasetRef {
    // TensorFlow cannot look below the first one. The second one maps the positions of elements to those of its inputs.
    const OPAQUE: [&str; 2] = ["NonSerializable", "GlobalShuffle"];
    let before = dataset.inputs();
    let is_same = before.len() == inputs.len() && before.iter().zip(&inputs).all(|(old, new)| Arc::ptr_eq(old, new));
    if is_same || OPAQUE.contains(&dataset.kind()) {
        return dataset.clone();
    }
    dataset.with_rewritten(inputs).unwrap_or_else(|| dataset.clone())
}

/// The dataset as one of a kind.
fn of_kind<T: Dataset>(dataset: &DatasetRef) -> Option<&T> {
    let any: &dyn Any = &**dataset;
    any.downcast_ref()
}

/// True if the last stage reads its input in the background.
fn works_ahead(dataset: &DatasetRef) -> bool {
    const WRAPPERS: [&str; 6] =
        ["AssertNext", "IgnoreErrors", "MaxIntraOpParallelism", "Model", "Options", "PrivateThreadPool"];
    const AHEAD: [&str; 5] = ["MapAndBatch", "ParallelBatch", "ParallelInterleave", "ParallelMap", "Prefetch"];
    let mut last = dataset.clone();
    while WRAPPERS.contains(&last.kind()) {
        let Some(input) = last.inputs().pop() else { return false };
        last = input;
    }
    let kind = last.kind().trim_end_matches(|c: char| c.is_ascii_digit());
    AHEAD.contains(&kind.strip_suffix('V').unwrap_or(kind))
}
