//! Random access: checks of positions, and elements that are computed from others.

use super::map::function_end;
use super::stack::stacked;
use crate::dataset::PendingElement;
use crate::function::{Call, Function};
use crate::{Cardinality, Dataset, DatasetRef, Element, Pipeline};
use status::{Result, cancelled, failed_precondition, out_of_range};
use std::ops::Range;
use std::sync::Arc;
use std::task::{Poll, ready};

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

/// The result of a function for an element.
pub(crate) fn mapped(
    pipeline: &Arc<Pipeline>,
    function: &Function,
    mut input: PendingElement,
) -> Result<PendingElement> {
    let function = function.in_pipeline(pipeline)?;
    let mut call: Option<Call> = None;
    Ok(Box::new(move |ctx| {
        let call = match &mut call {
            Some(call) => call,
            None => call.insert(function.call(ready!(input(ctx))?)),
        };
        let result = function_end(ready!(call.poll(ctx)), true);
        Poll::Ready(result.map(Option::unwrap_or_default))
    }))
}

/// The elements at several positions as one.
pub(crate) fn joined(pipeline: &Arc<Pipeline>, input: &DatasetRef, mut positions: Range<usize>) -> PendingElement {
    let (pipeline, input) = (pipeline.clone(), input.clone());
    let mut elements: Vec<Element> = Vec::new();
    let mut pending: Option<PendingElement> = None;
    Box::new(move |ctx| {
        loop {
            if ctx.pipeline.cancel().is_cancelled() {
                return Poll::Ready(Err(cancelled!("Iterator was cancelled")));
            }
            if let Some(element) = &mut pending {
                elements.push(ready!(element(ctx))?);
            }
            pending = match positions.next() {
                Some(position) => Some(input.element_at(&pipeline, position)?),
                None => return Poll::Ready(stacked(std::mem::take(&mut elements))),
            };
        }
    })
}
