//! A cache in memory, which is complete when its input was read to the end.

use super::random::{GlobalShuffle, RandomAccess};
use crate::dataset::{PendingElement, only};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter,
};
use op::Resource;
use parking_lot::Mutex;
use status::{Result, out_of_range};
use std::sync::Arc;
use std::task::{Poll, ready};

/// The elements of a complete cache.
#[derive(Default)]
pub(super) struct Contents(Mutex<Option<Arc<Vec<Element>>>>);

impl Resource for Contents {
    const TYPE_NAME: &'static str = "N10tensorflow4data18MemoryCacheManagerE";
}

impl Contents {
    fn get(&self) -> Option<Arc<Vec<Element>>> {
        self.0.lock().clone()
    }

    /// Completes the cache, unless another iterator has.
    fn complete(&self, elements: Vec<Element>) {
        self.0.lock().get_or_insert_with(|| Arc::new(elements));
    }

    fn set(&self, elements: Option<Vec<Element>>) {
        *self.0.lock() = elements.map(Arc::new);
    }
}

pub(super) struct MemoryCache {
    input: DatasetRef,
    contents: Arc<Contents>,
    random: Arc<RandomAccess>,
}

impl MemoryCache {
    /// A dataset that keeps the elements of its input in `contents`.
    pub(super) fn new(input: DatasetRef, contents: Arc<Contents>) -> MemoryCache {
        MemoryCache { random: Arc::new(RandomAccess::new(&input)), input, contents }
    }
}

impl Dataset for MemoryCache {
    fn kind(&self) -> &'static str {
        "MemoryCache"
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_rewritten(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        let (contents, random) = (self.contents.clone(), self.random.clone());
        only(inputs).map(|input| -> DatasetRef { Arc::new(MemoryCache { input, contents, random }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let impl_prefix: Arc<str> = format!("{}Impl", place.prefix).into();
        Ok(Box::new(MemoryIterator {
            phase: Phase::begin(&self, place, &impl_prefix)?,
            shuffle: GlobalShuffle::new(self.random.clone()),
            dataset: self,
            pipeline: place.pipeline.clone(),
            prefix: place.prefix.clone(),
            impl_prefix,
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn check_random_indexing(&self, inputs: Vec<Result<()>>) -> Result<()> {
        inputs.into_iter().collect()
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        match self.cardinality() {
            Cardinality::Finite(count) if index as u64 >= count => {
                Err(out_of_range!("Index out of range [0, {count}):{index}"))
            }
            _ => self.random.element_at(pipeline, index),
        }
    }
}

struct MemoryIterator {
    dataset: Arc<MemoryCache>,
    phase: Phase,
    shuffle: GlobalShuffle,
    pipeline: Arc<Pipeline>,
    prefix: Arc<str>,
    impl_prefix: Arc<str>,
}

/// What an iterator does with the cache from its beginning to its end.
enum Phase {
    /// Fills it: `elements` were read so far.
    Write { input: Input, elements: Vec<Element> },
    /// Reads it.
    Read { elements: Arc<Vec<Element>>, index: usize },
}

impl Phase {
    fn begin(dataset: &MemoryCache, place: &Place, impl_prefix: &Arc<str>) -> Result<Phase> {
        if let Some(elements) = dataset.contents.get() {
            return Ok(Phase::Read { elements, index: 0 });
        }
        Ok(Phase::Write { input: place.input_named(&dataset.input, impl_prefix)?, elements: Vec::new() })
    }
}

impl Iterate for MemoryIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if ctx.index_mapper.is_some() {
            return self.shuffle.poll_next(ctx);
        }
        let contents = &self.dataset.contents;
        match &mut self.phase {
            Phase::Read { elements, index } => {
                let element = elements.get(*index).cloned();
                *index += usize::from(element.is_some());
                Poll::Ready(Ok(element))
            }
            Phase::Write { input, elements } => {
                let next = ready!(input.poll_next(ctx));
                match &next {
                    Ok(Some(element)) if contents.get().is_none() => {
                        elements.push(element.clone());
                        if self.dataset.input.cardinality() == Cardinality::Finite(elements.len() as u64) {
                            contents.complete(std::mem::take(elements));
                        }
                    }
                    Ok(None) => contents.complete(std::mem::take(elements)),
                    _ => {}
                }
                Poll::Ready(next)
            }
        }
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        match &mut self.phase {
            Phase::Write { input, .. } => input.as_list(),
            Phase::Read { .. } => Vec::new(),
        }
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let complete = self.dataset.contents.get();
        if let Some(elements) = &complete {
            writer.string(&self.prefix, "cache_completed", "");
            write_elements(writer, &self.prefix, elements);
        }
        self.shuffle.save(writer, &self.prefix);
        match &self.phase {
            Phase::Read { index, .. } => writer.int(&self.impl_prefix, "index", *index as i64),
            Phase::Write { input, elements } => {
                if complete.is_none() {
                    write_elements(writer, &self.impl_prefix, elements);
                }
                input.save_present(writer)?;
            }
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.shuffle.restore(reader, &self.prefix);
        let is_complete = reader.contains(&self.prefix, "cache_completed");
        let elements = is_complete.then(|| read_elements(reader, &self.prefix)).transpose()?;
        self.dataset.contents.set(elements);
        let place = Place { pipeline: self.pipeline.clone(), prefix: self.prefix.clone() };
        self.phase = Phase::begin(&self.dataset, &place, &self.impl_prefix)?;
        match &mut self.phase {
            Phase::Read { elements, index } => {
                let saved = reader.contains(&self.impl_prefix, "index");
                *index = if saved { reader.count(&self.impl_prefix, "index")? } else { elements.len() };
                Ok(())
            }
            Phase::Write { input, elements } => {
                *elements = read_elements(reader, &self.impl_prefix)?;
                input.restore_present(reader)
            }
        }
    }
}

fn write_elements(writer: &mut StateWriter, prefix: &str, elements: &[Element]) {
    writer.int(prefix, "num_elements", elements.len() as i64);
    for (index, element) in elements.iter().enumerate() {
        writer.element(&format!("{prefix}::{index}"), element);
    }
}

fn read_elements(reader: &StateReader, prefix: &str) -> Result<Vec<Element>> {
    let count = reader.count(prefix, "num_elements")?;
    (0..count).map(|index| reader.element(&format!("{prefix}::{index}"))).collect()
}
