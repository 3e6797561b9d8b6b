//! What TensorFlow adds to a pipeline when an iterator begins.

use crate::transformations::prefetch;
use crate::{DatasetRef, Options};

/// The dataset that an iterator runs: a pipeline that does not work ahead of its consumer gets a prefetch at its end,
/// unless the options say otherwise.
pub(crate) fn finalized(dataset: &DatasetRef, options: &Options) -> DatasetRef {
    if options.inject_prefetch && !works_ahead(dataset) {
        return prefetch::chosen(dataset.clone());
    }
    dataset.clone()
}

/// True if the last stage reads its input in the background.
fn works_ahead(dataset: &DatasetRef) -> bool {
    const WRAPPERS: [&str; 5] = ["AssertNext", "MaxIntraOpParallelism", "Model", "Options", "PrivateThreadPool"];
    const AHEAD: [&str; 5] = ["MapAndBatch", "ParallelBatch", "ParallelInterleave", "ParallelMap", "Prefetch"];
    let mut last = dataset.clone();
    while WRAPPERS.contains(&last.kind()) {
        let Some(input) = last.inputs().pop() else { return false };
        last = input;
    }
    let kind = last.kind().trim_end_matches(|c: char| c.is_ascii_digit());
    AHEAD.contains(&kind.strip_suffix('V').unwrap_or(kind))
}
