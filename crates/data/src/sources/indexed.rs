//! Sources that know the element at each position.

use crate::dataset::PendingElement;
use crate::{Element, Iterate, Next, PollContext, StateReader, StateWriter, full_name};
use status::{Code, Result, out_of_range};
use std::sync::Arc;
use std::task::Poll;

/// What is iterated over by position.
pub(crate) trait Indexed: Send + Sync + 'static {
    /// The number of elements.
    fn count(&self) -> u64;

    /// The element at a position below `count`.
    fn at(&self, position: u64) -> Result<Element>;
}

/// The element at a position that a user chose.
pub(crate) fn element_at(dataset: &impl Indexed, index: usize) -> Result<PendingElement> {
    if index as u64 >= dataset.count() {
        return Err(out_of_range!("Index out of range [0, {}):{index}", dataset.count()));
    }
    let element = dataset.at(index as u64)?;
    Ok(Box::new(move |_| Poll::Ready(Ok(element.clone()))))
}

/// Iterates over all positions, or over those that a global shuffle chooses.
pub(crate) struct IndexedIterator<D> {
    dataset: Arc<D>,
    position: u64,
    is_mapped: bool,
    prefix: Arc<str>,
}

impl<D: Indexed> IndexedIterator<D> {
    /// An iterator at the first position.
    pub(crate) fn new(dataset: Arc<D>, prefix: &Arc<str>) -> IndexedIterator<D> {
        IndexedIterator { dataset, position: 0, is_mapped: false, prefix: prefix.clone() }
    }

    fn next(&mut self, ctx: &PollContext<'_>) -> Result<Option<Element>> {
        let Some(position) = self.next_position(ctx)?.filter(|&position| position < self.dataset.count()) else {
            return Ok(None);
        };
        self.dataset.at(position).map(Some)
    }

    fn next_position(&mut self, ctx: &PollContext<'_>) -> Result<Option<u64>> {
        self.is_mapped = ctx.index_mapper.is_some();
        while self.position < self.dataset.count() || self.is_mapped {
            let position = self.position;
            self.position += 1;
            let Some(map) = &ctx.index_mapper else { return Ok(Some(position)) };
            match map(position as usize) {
                Err(error) if error.code == Code::NotFound => {}
                Err(error) if error.code == Code::OutOfRange => return Ok(None),
                mapped => return mapped.map(|mapped| Some(mapped as u64)),
            }
        }
        Ok(None)
    }
}

impl<D: Indexed> Iterate for IndexedIterator<D> {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        Poll::Ready(self.next(ctx))
    }

    /// TensorFlow counts the positions of a global shuffle apart.
    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let (own, mapped) = if self.is_mapped { (0, self.position) } else { (self.position, 0) };
        writer.int(&self.prefix, &full_name(&self.prefix, "index"), own as i64);
        writer.int(&self.prefix, "global_shuffle_iterator_next_index", mapped as i64);
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let own = reader.count(&self.prefix, "index")?;
        let mapped = reader.count(&self.prefix, "global_shuffle_iterator_next_index").unwrap_or(0);
        self.position = own.max(mapped) as u64;
        Ok(())
    }
}
