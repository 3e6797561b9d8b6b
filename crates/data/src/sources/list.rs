//! ListDataset: elements whose components are separate tensors.

use super::indexed::{Indexed, IndexedIterator, element_at};
use crate::attrs::{DATASET, dataset_kernel, spec};
use crate::dataset::PendingElement;
use crate::{Cardinality, Dataset, Element, Iterate, Pipeline, Place, Spec};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::Result;
use std::sync::Arc;
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[Op {
    def: "ListDataset(tensors: [Tinput_types]) -> handle: variant; Tinput_types: list(type) >= 1; \
          output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = \"\"; stateful",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        let tensors = inputs.tensors_from(0)?;
        let components = spec.shapes.len().max(1);
        Ok(List { count: tensors.len() / components, tensors, components, spec: spec.clone() })
    })
}

struct List {
    /// The components of all elements, one element after the other.
    tensors: Vec<Tensor>,
    components: usize,
    count: usize,
    spec: Spec,
}

impl Indexed for List {
    fn count(&self) -> u64 {
        self.count as u64
    }

    fn at(&self, position: u64) -> Result<Element> {
        Ok(self.tensors.chunks_exact(self.components).nth(position as usize).unwrap_or_default().into())
    }
}

impl Dataset for List {
    fn kind(&self) -> &'static str {
        "List"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(IndexedIterator::new(self, &place.prefix)))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Finite(self.count as u64)
    }

    fn check_random_indexing(&self, _: Vec<Result<()>>) -> Result<()> {
        Ok(())
    }

    fn element_at(&self, _: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        element_at(self, index)
    }
}
