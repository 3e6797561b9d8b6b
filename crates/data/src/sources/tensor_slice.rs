//! TensorSliceDataset: the slices of tensors along their first dimension.

use super::indexed::{Indexed, IndexedIterator, element_at};
use super::tensor::declared_spec;
use crate::attrs::{DATASET, dataset_kernel};
use crate::dataset::PendingElement;
use crate::{Cardinality, Dataset, Element, Iterate, Pipeline, Place, Spec};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "TensorSliceDataset(components: [Toutput_types]) -> handle: variant; Toutput_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1; is_files: bool = false; metadata: string = \"\"; \
          replicate_on_split: bool = false; stateful",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let declared = declared_spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        let components = inputs.tensors_from(0)?.into_iter().map(Sliced::new).collect::<Result<Vec<_>>>()?;
        let count = components.first().map_or(0, |first| first.count);
        if components.iter().any(|component| component.count != count) {
            return Err(invalid!("All components must have the same size in the 0th dimension"));
        }
        let types = components.iter().map(|component| component.tensor.dtype()).collect();
        let spec = Spec { types, shapes: components.iter().map(|component| (&component.shape).into()).collect() };
        spec.check(&declared)?;
        Ok(TensorSlice { components, count, spec })
    })
}

/// A tensor and the shape of its slices.
struct Sliced {
    tensor: Tensor,
    count: usize,
    shape: Shape,
    /// The number of elements of one slice.
    stride: usize,
}

impl Sliced {
    fn new(tensor: Tensor) -> Result<Sliced> {
        let Some((&count, rest)) = tensor.shape().split_first() else {
            return Err(invalid!("All components must be at least 1-dimensional"));
        };
        let shape = Shape::new(rest);
        Ok(Sliced { count, stride: shape.checked_elements()?, shape, tensor })
    }

    /// The slice at a position below `count`, which shares the buffer.
    fn at(&self, position: usize) -> Result<Tensor> {
        self.tensor.slice_elements(position * self.stride, self.shape.clone())
    }
}

struct TensorSlice {
    components: Vec<Sliced>,
    count: usize,
    spec: Spec,
}

impl Indexed for TensorSlice {
    fn count(&self) -> u64 {
        self.count as u64
    }

    fn at(&self, position: u64) -> Result<Element> {
        self.components.iter().map(|component| component.at(position as usize)).collect()
    }
}

impl Dataset for TensorSlice {
    fn kind(&self) -> &'static str {
        "TensorSlice"
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
