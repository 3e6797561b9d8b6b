//! TensorDataset: one element with the given components.

use super::indexed::{Indexed, element_at};
use crate::attrs::{DATASET, dataset_kernel};
use crate::dataset::PendingElement;
use crate::{
    Cardinality, Dataset, Element, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Code, Result};
use std::sync::Arc;
use std::task::Poll;
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "TensorDataset(components: [Toutput_types]) -> handle: variant; Toutput_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1; metadata: string = \"\"; stateful",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let declared = declared_spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        let components = inputs.tensors_from(0)?;
        let shapes = components.iter().map(|component| PartialShape::from(component.shape())).collect();
        let spec = Spec { types: components.iter().map(Tensor::dtype).collect(), shapes };
        spec.check(&declared)?;
        Ok(FromTensor { element: components.into(), spec })
    })
}

/// Types and shapes as the attributes of the node declare them.
pub(crate) fn declared_spec(setup: &Setup<'_>) -> Result<Spec> {
    Ok(Spec { types: setup.types("Toutput_types")?, shapes: setup.list("output_shapes")?.shapes.clone() })
}

struct FromTensor {
    element: Element,
    spec: Spec,
}

impl Indexed for FromTensor {
    fn count(&self) -> u64 {
        1
    }

    fn at(&self, _: u64) -> Result<Element> {
        Ok(self.element.clone())
    }
}

impl Dataset for FromTensor {
    fn kind(&self) -> &'static str {
        "FromTensor"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(FromTensorIterator { dataset: self, produced: false, mapped: 0, prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Finite(1)
    }

    fn check_random_indexing(&self, _: Vec<Result<()>>) -> Result<()> {
        Ok(())
    }

    fn element_at(&self, _: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        element_at(self, index)
    }
}

struct FromTensorIterator {
    dataset: Arc<FromTensor>,
    produced: bool,
    /// The positions that a global shuffle took.
    mapped: usize,
    prefix: Arc<str>,
}

impl FromTensorIterator {
    fn next(&mut self, ctx: &PollContext<'_>) -> Result<Option<Element>> {
        let ended = match &ctx.index_mapper {
            None => std::mem::replace(&mut self.produced, true),
            Some(map) => loop {
                self.mapped += 1;
                match map(self.mapped - 1) {
                    Err(error) if error.code == Code::NotFound => {}
                    Err(error) if error.code == Code::OutOfRange => break true,
                    mapped => break mapped? > 0,
                }
            },
        };
        Ok((!ended).then(|| self.dataset.element.clone()))
    }
}

impl Iterate for FromTensorIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        Poll::Ready(self.next(ctx))
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        writer.int(&self.prefix, "produced", i64::from(self.produced));
        writer.int(&self.prefix, "global_shuffle_iterator_next_index", self.mapped as i64);
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.produced = reader.int(&self.prefix, "produced")? != 0;
        self.mapped = reader.count(&self.prefix, "global_shuffle_iterator_next_index").unwrap_or(0);
        Ok(())
    }
}
