//! ConcatenateDataset: the elements of one dataset, then those of another.

use super::random_access::check_index;
use crate::attrs::{DATASET, dataset_kernel, input_dataset};
use crate::dataset::PendingElement;
use crate::iterate::{IndexMapper, next_mapped};
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, failed_precondition, invalid, not_found, out_of_range};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, ready};
use tensor::PartialShape;

pub(crate) const OPS: &[Op] = &[Op {
    def: "ConcatenateDataset(input_dataset: variant, another_dataset: variant) -> handle: variant; \
          output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_kernel(setup, |_, inputs| {
        let parts = [input_dataset(inputs, 0)?, input_dataset(inputs, 1)?];
        let spec = common_spec(parts[0].spec(), parts[1].spec())?;
        Ok(Concatenate { parts, spec, cardinality: OnceLock::new() })
    })
}

fn common_spec(first: &Spec, second: &Spec) -> Result<Spec> {
    if first.types != second.types {
        return Err(invalid!(
            "input dataset and dataset to concatenate have different output_types {:?} and {:?}",
            first.types,
            second.types
        ));
    }
    let shapes = first.shapes.iter().zip(&second.shapes).map(|(first, second)| common_shape(first, second)).collect();
    Ok(Spec { types: first.types.clone(), shapes })
}

/// Unknown where the shapes differ.
pub(crate) fn common_shape(first: &PartialShape, second: &PartialShape) -> PartialShape {
    let (Some(first), Some(second)) = (first.dims(), second.dims()) else { return PartialShape::unknown() };
    if first.len() != second.len() {
        return PartialShape::unknown();
    }
    let dims = first.iter().zip(second).map(|(&first, &second)| if first == second { first } else { -1 });
    PartialShape::new(&dims.collect::<Vec<_>>())
}

struct Concatenate {
    parts: [DatasetRef; 2],
    spec: Spec,
    /// Computed once: a dataset can be reached on very many paths.
    cardinality: OnceLock<Cardinality>,
}

impl Dataset for Concatenate {
    fn kind(&self) -> &'static str {
        "Concatenate"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        self.parts.to_vec()
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        let parts = inputs.try_into().ok()?;
        Some(Arc::new(Concatenate { parts, spec: self.spec.clone(), cardinality: OnceLock::new() }))
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(ConcatenateIterator {
            inputs: [place.input_at(&self.parts[0], 0)?, Input::ended()],
            part: 0,
            mapped: 0,
            place: place.clone(),
            dataset: self,
        }))
    }

    fn cardinality(&self) -> Cardinality {
        *self.cardinality.get_or_init(|| match (self.parts[0].cardinality(), self.parts[1].cardinality()) {
            (Cardinality::Infinite, _) | (_, Cardinality::Infinite) => Cardinality::Infinite,
            (Cardinality::Finite(first), Cardinality::Finite(second)) => {
                Cardinality::Finite(first.saturating_add(second))
            }
            _ => Cardinality::Unknown,
        })
    }

    fn check_random_indexing(&self, inputs: Vec<Result<()>>) -> Result<()> {
        inputs.into_iter().collect()
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        check_index(self, "Concatenate", index)?;
        let first = self.parts[0].cardinality().map(|count| count.min(usize::MAX as u64));
        match first {
            Cardinality::Finite(count) if index as u64 >= count => {
                self.parts[1].element_at(pipeline, index - count as usize)
            }
            _ => self.parts[0].element_at(pipeline, index),
        }
    }
}

struct ConcatenateIterator {
    inputs: [Input; 2],
    /// The part that is read; 2 at the end.
    part: usize,
    /// The number of positions that were mapped for a global shuffle.
    mapped: usize,
    dataset: Arc<Concatenate>,
    place: Place,
}

impl ConcatenateIterator {
    /// Begins the second part. It waits until then, to save memory.
    fn open_second(&mut self) -> Result<()> {
        self.inputs[1] = self.place.input_at(&self.dataset.parts[1], 1)?;
        Ok(())
    }

    fn poll_mapped(&mut self, ctx: &mut PollContext<'_>, map: &IndexMapper) -> Next {
        let (Cardinality::Finite(first), Cardinality::Finite(second)) =
            (self.dataset.parts[0].cardinality(), self.dataset.parts[1].cardinality())
        else {
            return Poll::Ready(Err(failed_precondition!("Global shuffling requires finite cardinalities.")));
        };
        if self.inputs[1].has_ended() {
            self.open_second()?;
        }
        let Some(position) = next_mapped(map, &mut self.mapped)? else { return Poll::Ready(Ok(None)) };
        let part = usize::from(position as u64 >= first);
        let range = if part == 0 { 0..first } else { first..first.saturating_add(second) };
        let mapper = part_mapper(map.clone(), range, first.saturating_add(second));
        let mut inner = PollContext { index_mapper: Some(mapper), ..PollContext::new(ctx.pipeline, ctx.waker) };
        let next = self.inputs[part].poll_next(&mut inner);
        if next.is_pending() {
            self.mapped -= 1; // the same position again
        }
        next
    }
}

/// Maps to positions of one part; positions of the other part are not found.
fn part_mapper(map: IndexMapper, range: std::ops::Range<u64>, end: u64) -> IndexMapper {
    Arc::new(move |index| {
        let position = map(index)? as u64;
        if position >= end {
            return Err(out_of_range!("Running out of elements."));
        }
        if !range.contains(&position) {
            return Err(not_found!("Skipping this element."));
        }
        Ok((position - range.start) as usize)
    })
}

impl Iterate for ConcatenateIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if let Some(map) = ctx.index_mapper.clone() {
            return self.poll_mapped(ctx, &map);
        }
        while let Some(input) = self.inputs.get_mut(self.part) {
            match ready!(input.poll_next(ctx)) {
                Ok(None) => self.part += 1,
                next => return Poll::Ready(next),
            }
            if self.part == 1 {
                self.open_second()?;
            }
        }
        Poll::Ready(Ok(None))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.inputs.iter_mut().flat_map(Input::as_list).collect()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &self.place.prefix;
        writer.int(prefix, "i", self.part as i64);
        writer.int(prefix, "element_count", self.mapped as i64);
        self.inputs[0].save(writer, prefix, "input_impl_uninitialized[0]")?;
        self.inputs[1].save(writer, prefix, "input_impl_uninitialized[1]")
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.place.prefix.clone();
        self.part = reader.count(&prefix, "i")?;
        if self.part > 2 {
            return Err(invalid!("i_ must be in range [0, 2]."));
        }
        if reader.contains(&prefix, "element_count") {
            self.mapped = reader.count(&prefix, "element_count")?;
        }
        self.inputs[0].restore(reader, &prefix, "input_impl_uninitialized[0]")?;
        self.open_second()?;
        self.inputs[1].restore(reader, &prefix, "input_impl_uninitialized[1]")
    }
}
