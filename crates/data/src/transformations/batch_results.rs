//! The form in which stages that compute batches in parallel save them.

use super::rows::row;
use super::stack::stacked;
use crate::{Element, StateReader, StateWriter, full_name};
use status::{Error, Result, invalid};
use tensor::Tensor;

/// A batch as far as it is computed.
#[derive(Clone, Default)]
pub(crate) struct Partial {
    /// The elements before an error.
    pub elements: Vec<Element>,
    /// The number of elements that have been computed, or have failed.
    pub seen: usize,
    /// The first error.
    pub failed: Option<Error>,
}

impl Partial {
    /// Adds the result for the next element.
    pub fn add(&mut self, result: Result<Element>) {
        self.seen += 1;
        match result {
            Ok(element) if self.failed.is_none() => self.elements.push(element),
            Err(error) if self.failed.is_none() => self.failed = Some(error),
            _ => {}
        }
    }

    /// Writes the batch as number `index` of the batches of an iterator, of which each has `size` elements.
    pub fn save(mut self, writer: &mut StateWriter, prefix: &str, index: usize, size: usize) {
        let count = self.elements.len();
        let output = stacked(std::mem::take(&mut self.elements)).unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            Element::new()
        });
        writer.int(prefix, &key(index, "num_calls"), size.saturating_sub(self.seen) as i64);
        save_batch(writer, prefix, index, count, self.failed.map_or(Ok(output), Err));
    }

    /// Reads what `save` or TensorFlow wrote.
    pub fn restored(reader: &StateReader, prefix: &str, index: usize, size: usize) -> Result<Partial> {
        let waiting = reader.count(prefix, &key(index, "num_calls"))?;
        let count = reader.count(prefix, &key(index, "num_elements"))?;
        let (batch, status) = restored_batch(reader, prefix, index)?;
        let elements = if batch.is_empty() { Vec::new() } else { unstacked(&batch, count)? };
        Ok(Partial { elements, seen: size.saturating_sub(waiting), failed: status.err() })
    }
}

fn unstacked(batch: &Element, count: usize) -> Result<Vec<Element>> {
    (0..count).map(|index| batch.iter().map(|component| row(component, index)).collect()).collect()
}

fn key(index: usize, name: &str) -> String {
    format!("batch_results_{index}_{name}")
}

/// Writes a batch of `count` elements, or the error in its place.
pub(crate) fn save_batch(writer: &mut StateWriter, prefix: &str, index: usize, count: usize, batch: Result<Element>) {
    writer.int(prefix, &key(index, "num_elements"), count as i64);
    let full = |name: &str| full_name(prefix, &key(index, name));
    writer.status(prefix, &full("status_code"), &full("status_msg"), &batch);
    let output = batch.unwrap_or_default();
    if !output.is_empty() {
        writer.string(prefix, &key(index, "output_allocated"), "");
    }
    writer.int(prefix, &full("output_size"), output.len() as i64);
    for (place, component) in output.into_iter().enumerate() {
        writer.tensor(&outputs_prefix(prefix, index), &format!("output_{place}"), component);
    }
}

/// Reads what `save_batch` or TensorFlow wrote; a batch of TensorFlow that failed may have an output too.
pub(crate) fn restored_batch(reader: &StateReader, prefix: &str, index: usize) -> Result<(Element, Result<()>)> {
    let status = reader.status(prefix, &key(index, "status_code"), &key(index, "status_msg"))?;
    let count = reader.count(prefix, &key(index, "output_size"))?;
    let outputs = outputs_prefix(prefix, index);
    let output = reader.tensors(&outputs, count, |place| format!("output_{place}"))?;
    Ok((output, status))
}

fn outputs_prefix(prefix: &str, index: usize) -> String {
    full_name(prefix, &format!("batch_results_{index}"))
}

/// Stacks elements. Those of another shape with as many elements take the shape of the first, as in TensorFlow's fused
/// map and batch.
pub(crate) fn stacked_by_count(mut elements: Vec<Element>) -> Result<Element> {
    let Some((first, others)) = elements.split_first_mut() else { return Ok(Element::new()) };
    for element in others {
        for (component, expected) in element.iter_mut().zip(first.iter()) {
            fit(component, expected)?;
        }
    }
    stacked(elements)
}

fn fit(component: &mut Tensor, expected: &Tensor) -> Result<()> {
    if component.shape() == expected.shape() {
        return Ok(());
    }
    if component.elements() != expected.elements() {
        return Err(invalid!(
            "Cannot add tensor to the batch: number of elements does not match. Shapes are: [tensor]: {}, [batch]: {}",
            component.shape(),
            expected.shape()
        ));
    }
    *component = component.clone().reshaped(expected.shape().clone())?;
    Ok(())
}
