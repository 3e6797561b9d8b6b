//! Iterators of datasets that a function returned, read in the background.

use super::map::in_function;
use super::nested::Nested;
use super::saved::{read_list, write_list};
use crate::budget::Sizing;
use crate::function::FunctionRun;
use crate::{Ahead, Element, Input, Iterate, Next, Pipeline, PollContext, StateReader, StateWriter};
use status::{Error, Result};
use std::sync::Arc;
use std::task::{Poll, ready};

/// The dataset of one element of the input, which is read ahead.
pub(crate) struct BackgroundNested {
    /// The number in the name of the iterator.
    pub id: usize,
    /// The element of the input.
    pub element: Element,
    /// The elements of the dataset.
    pub ahead: Ahead,
}

/// How the stages of one iterator read their datasets.
pub(crate) struct Reading {
    /// The function that returns datasets.
    pub function: FunctionRun,
    /// The pipeline.
    pub pipeline: Arc<Pipeline>,
    /// The name of the iterator.
    pub prefix: Arc<str>,
    /// The name of the op in errors.
    pub op: &'static str,
    /// How many elements of each dataset are read ahead.
    pub limit: usize,
    /// How many bytes they may have.
    pub byte_limit: usize,
    /// Who decides on these numbers.
    pub sizing: Sizing,
}

impl Reading {
    /// Begins to read the dataset of an element; an error of the input is returned in the place of its elements.
    pub fn begin(&self, id: usize, element: Result<Element>) -> BackgroundNested {
        match element {
            Ok(element) => {
                let nested = self.open(id, element, None);
                nested.ahead.start();
                nested
            }
            Err(error) => self.ended(vec![Err(error)]),
        }
    }

    /// A dataset of a saved state, of which `results` were read ahead already.
    pub fn restored(
        &self,
        id: usize,
        element: Option<Element>,
        results: Vec<Result<Element>>,
        reader: &Arc<StateReader>,
    ) -> BackgroundNested {
        let Some(element) = element else { return self.ended(results) };
        let nested = self.open(id, element, Some(reader));
        nested.ahead.with(|buffer, _| buffer.extend(results));
        nested
    }

    /// A dataset of which nothing is left but these elements.
    pub fn ended(&self, results: Vec<Result<Element>>) -> BackgroundNested {
        let ahead = self.ahead(Input::ended());
        ahead.with(|buffer, _| buffer.extend(results));
        BackgroundNested { id: 0, element: Element::new(), ahead }
    }

    fn ahead(&self, input: Input) -> Ahead {
        let share = self.pipeline.budget().share(self.sizing, self.byte_limit);
        Ahead::new(&self.pipeline, input, self.limit, share)
    }

    fn open(&self, id: usize, element: Element, saved: Option<&Arc<StateReader>>) -> BackgroundNested {
        let call = self.function.call_in_background(element.clone());
        let prefix = format!("{}[{id}]", self.prefix);
        let name = prefix.as_str().into();
        let nested = match saved {
            None => Nested::new(call, prefix),
            Some(reader) => Nested::restored(call, prefix, reader),
        };
        let opening = Opening { nested: Some(nested), failed: None, op: self.op, parent: self.prefix.clone() };
        let input = Input::new(Box::new(opening), name);
        BackgroundNested { id, element, ahead: self.ahead(input) }
    }
}

/// Waits for the function, and then reads the dataset.
struct Opening {
    nested: Option<Nested>,
    /// An error of the function that was not returned yet.
    failed: Option<Error>,
    op: &'static str,
    parent: Arc<str>,
}

impl Opening {
    fn poll_open(&mut self, ctx: &mut PollContext<'_>) -> Poll<()> {
        let Some(nested) = &mut self.nested else { return Poll::Ready(()) };
        let describe = |error| in_function(error, self.op, &self.parent);
        if let Err(error) = ready!(nested.poll_open(ctx, "Function", describe)) {
            self.nested = None;
            self.failed = Some(error);
        }
        Poll::Ready(())
    }
}

impl Iterate for Opening {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        ready!(self.poll_open(ctx));
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        let Some(nested) = &mut self.nested else { return Poll::Ready(Ok(None)) };
        nested.poll_next(ctx)
    }

    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        ready!(self.poll_open(ctx));
        self.nested.as_mut().map_or(Poll::Ready(Ok(())), |nested| nested.poll_settle(ctx))
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        self.nested.as_ref().map_or(Ok(()), |nested| nested.save(writer))
    }

    /// The state is restored when the dataset is there.
    fn restore(&mut self, _: &Arc<StateReader>) -> Result<()> {
        Ok(())
    }
}

/// Writes tensors and their number under keys that begin with `key`.
pub(crate) fn write_counted(writer: &mut StateWriter, prefix: &str, key: &str, tensors: &[tensor::Tensor]) {
    writer.int(prefix, &format!("{key}.size"), tensors.len() as i64);
    write_list(writer, prefix, key, tensors);
}

/// Reads what `write_counted` wrote.
pub(crate) fn read_counted(reader: &StateReader, prefix: &str, key: &str) -> Result<Element> {
    read_list(reader, prefix, key, reader.count(prefix, &format!("{key}.size"))?)
}
