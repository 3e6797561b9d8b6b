//! Bounds on the size of pipelines: a small graph can describe a very large one.

use crate::{DatasetRef, fold};
use status::{Result, exhausted};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most datasets in a row that read each other, those that functions return included: iterators call those of their
/// inputs.
const MOST_STAGES: usize = 1000;
/// The most iterators of one pipeline at the same time. A dataset that is read twice has two.
const MOST_ITERATORS: usize = 100_000;
/// The most components of an element: each stage describes all of them.
const MOST_COMPONENTS: usize = 1 << 16;
/// A name of this length in bytes costs as much as an iterator. Names grow with the number of stages.
const NAME: usize = 1 << 10;

/// The number of datasets in a row that read each other.
pub(crate) fn stages_of(dataset: &DatasetRef) -> usize {
    fold(dataset, &mut |_, inputs: Vec<usize>| 1 + inputs.into_iter().max().unwrap_or(0))
}

/// An error if more datasets in a row read each other than iterators can call each other.
pub(crate) fn check_stages(stages: usize) -> Result<()> {
    if stages <= MOST_STAGES {
        return Ok(());
    }
    Err(exhausted!("An input pipeline has more than {MOST_STAGES} stages, with those that its functions return"))
}

/// An error if elements have more components than a stage can describe.
pub(crate) fn check_components(components: usize) -> Result<()> {
    if components <= MOST_COMPONENTS {
        return Ok(());
    }
    Err(exhausted!("The elements of a dataset have {components} components, more than {MOST_COMPONENTS}"))
}

/// The iterators of a pipeline that exist.
#[derive(Clone, Default)]
pub(crate) struct Iterators(Arc<AtomicUsize>);

/// One of them, until it is dropped.
pub(crate) struct Counted {
    iterators: Iterators,
    weight: usize,
}

impl Iterators {
    /// Counts an iterator that is about to begin.
    pub(crate) fn count(&self, name: &str) -> Result<Counted> {
        let weight = 1 + name.len() / NAME;
        let counted = Counted { iterators: self.clone(), weight };
        if self.0.fetch_add(weight, Ordering::Relaxed) + weight <= MOST_ITERATORS {
            return Ok(counted);
        }
        Err(exhausted!(
            "An input pipeline needs more than {MOST_ITERATORS} iterators at once: a dataset that is read several times \
             has an iterator each time, with one for each of its inputs"
        ))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.iterators.0.fetch_sub(self.weight, Ordering::Relaxed);
    }
}
