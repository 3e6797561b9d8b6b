//! ZipDataset: elements with the components of one element of each input.

use super::random_access::check_index;
use crate::attrs::{DATASET, dataset_kernel, input_dataset};
use crate::dataset::PendingElement;
use crate::limits::check_components;
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Error, Result};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "ZipDataset(input_datasets: N * variant) -> handle: variant; output_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1; N: int >= 1; metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_kernel(setup, |_, inputs| {
        let parts = (0..inputs.len()).map(|index| input_dataset(inputs, index)).collect::<Result<Vec<_>>>()?;
        check_components(parts.iter().map(|part| part.spec().types.len()).sum())?;
        let spec = Spec {
            types: parts.iter().flat_map(|part| part.spec().types.clone()).collect(),
            shapes: parts.iter().flat_map(|part| part.spec().shapes.clone()).collect(),
        };
        Ok(Zip { parts, spec, cardinality: OnceLock::new() })
    })
}

struct Zip {
    parts: Vec<DatasetRef>,
    spec: Spec,
    /// Computed once: a dataset can be reached on very many paths.
    cardinality: OnceLock<Cardinality>,
}

impl Dataset for Zip {
    fn kind(&self) -> &'static str {
        "Zip"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        self.parts.clone()
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        Some(Arc::new(Zip { parts: inputs, spec: self.spec.clone(), cardinality: OnceLock::new() }))
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let inputs = self.parts.iter().enumerate().map(|(index, part)| place.input_at(part, index));
        Ok(Box::new(ZipIterator {
            inputs: inputs.collect::<Result<Vec<_>>>()?,
            row: Row::default(),
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        let parts = || self.parts.iter().map(|part| part.cardinality());
        *self.cardinality.get_or_init(|| parts().fold(Cardinality::Infinite, shorter))
    }

    fn check_random_indexing(&self, inputs: Vec<Result<()>>) -> Result<()> {
        inputs.into_iter().collect()
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        check_index(self, "Zip", index)?;
        let mut parts = self.parts.iter().map(|part| part.element_at(pipeline, index)).collect::<Result<Vec<_>>>()?;
        let (mut done, mut element) = (0, Element::new());
        Ok(Box::new(move |ctx| {
            while let Some(part) = parts.get_mut(done) {
                element.extend(ready!(part(ctx))?);
                done += 1;
            }
            Poll::Ready(Ok(std::mem::take(&mut element)))
        }))
    }
}

fn shorter(one: Cardinality, other: Cardinality) -> Cardinality {
    match (one, other) {
        (Cardinality::Unknown, _) | (_, Cardinality::Unknown) => Cardinality::Unknown,
        (Cardinality::Infinite, known) | (known, Cardinality::Infinite) => known,
        (Cardinality::Finite(one), Cardinality::Finite(other)) => Cardinality::Finite(one.min(other)),
    }
}

struct ZipIterator {
    /// Empty at the end.
    inputs: Vec<Input>,
    row: Row,
    prefix: Arc<str>,
}

/// What has arrived of the next element. All inputs are read even after an error or an end, to keep them in step.
#[derive(Default)]
struct Row {
    read: usize,
    element: Element,
    has_ended: bool,
    error: Option<Error>,
}

impl Row {
    fn add(&mut self, next: Result<Option<Element>>) {
        self.read += 1;
        match next {
            _ if self.has_ended => {}
            Ok(None) => self.has_ended = true,
            Ok(Some(element)) => self.element.extend(element),
            Err(error) => self.error = self.error.take().or(Some(error)),
        }
    }
}

impl Iterate for ZipIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.inputs.is_empty() {
            return Poll::Ready(Ok(None));
        }
        while let Some(input) = self.inputs.get_mut(self.row.read) {
            let next = ready!(input.poll_next(ctx));
            self.row.add(next);
        }
        let row = std::mem::take(&mut self.row);
        if row.has_ended {
            self.inputs.clear();
        }
        Poll::Ready(match row.error {
            Some(error) => Err(error),
            None => Ok((!row.has_ended).then_some(row.element)),
        })
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.inputs.iter_mut().flat_map(Input::as_list).collect()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        writer.int(&self.prefix, "input_impls_empty", i64::from(self.inputs.is_empty()));
        self.inputs.iter().try_for_each(|input| input.save_present(writer))
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        if reader.int(&self.prefix, "input_impls_empty")? != 0 {
            self.inputs.clear();
        }
        self.inputs.iter_mut().try_for_each(|input| input.restore_present(reader))
    }
}
