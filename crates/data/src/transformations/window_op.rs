//! WindowOp: a dataset of given elements, and the windows that other datasets return.

use crate::attrs::{DATASET, described_kernel, spec};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, invalid};
use std::sync::Arc;
use std::task::Poll;

pub(crate) const OPS: &[Op] = &[Op {
    def: "WindowOp(inputs: [Tinputs]) -> handle: variant; output_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1; Tinputs: list(type) >= 1",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    described_kernel(setup, move |_, inputs| {
        let (tensors, components) = (inputs.tensors_from(0)?, spec.shapes.len());
        if tensors.len() % components != 0 {
            return Err(invalid!("{} tensors are not a number of elements of {components} components", tensors.len()));
        }
        let elements = tensors.chunks_exact(components).map(Element::from).collect();
        Ok(Window { elements, spec: spec.clone() })
    })
}

/// A dataset of the given elements.
pub(crate) fn window(elements: Vec<Element>, spec: Spec) -> DatasetRef {
    Arc::new(Window { elements, spec })
}

struct Window {
    elements: Vec<Element>,
    spec: Spec,
}

impl Dataset for Window {
    fn kind(&self) -> &'static str {
        "Window"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(WindowIterator { dataset: self, next: 0, prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Finite(self.elements.len() as u64)
    }
}

struct WindowIterator {
    dataset: Arc<Window>,
    next: usize,
    prefix: Arc<str>,
}

impl Iterate for WindowIterator {
    fn poll_next(&mut self, _: &mut PollContext<'_>) -> Next {
        let element = self.dataset.elements.get(self.next).cloned();
        self.next += usize::from(element.is_some());
        Poll::Ready(Ok(element))
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        writer.int(&self.prefix, "i", self.next as i64);
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.next = reader.count(&self.prefix, "i")?;
        Ok(())
    }
}
