//! WindowOp: a dataset of given elements, and the windows that other datasets return.

use crate::attrs::{DATASET, dataset_kernel, spec};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, invalid};
use std::sync::Arc;
use std::task::Poll;
use tensor::{DType, PartialShape, Tensor, VariantData};

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
    dataset_kernel(setup, move |_, inputs| {
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

/// The type name of a window in saved states.
const TYPE_NAME: &str = "flowgrid.Window";
/// Stands for a shape of unknown rank.
const UNKNOWN_RANK: [i64; 1] = [-2];

/// A window as a value: the types, the shape of each component, and the components of all elements.
pub(crate) fn saved(window: &dyn Dataset, elements: &[Element]) -> VariantData {
    let Spec { types, shapes } = window.spec();
    let types: Vec<i32> = types.iter().map(|dtype| dtype.number()).collect();
    let shapes = shapes.iter().map(|shape| Tensor::vector(shape.dims().unwrap_or(&UNKNOWN_RANK)));
    let components = elements.iter().flatten().cloned();
    let tensors = std::iter::once(Tensor::vector(&types)).chain(shapes).chain(components).collect();
    VariantData { type_name: TYPE_NAME.to_string(), tensors, ..VariantData::default() }
}

/// The window in a value; none if it is something else.
pub(crate) fn restored(data: &VariantData) -> Option<Result<DatasetRef>> {
    (data.type_name == TYPE_NAME).then(|| restored_from(&data.tensors))
}

fn restored_from(tensors: &[Tensor]) -> Result<DatasetRef> {
    let wrong = || invalid!("A window in the state of an iterator is damaged");
    let (types, rest) = tensors.split_first().ok_or_else(wrong)?;
    let types: Vec<DType> = types.values::<i32>()?.iter().map(|&number| DType::from_number(number)).collect();
    let (shapes, components) = rest.split_at_checked(types.len()).ok_or_else(wrong)?;
    let shapes = shapes.iter().map(restored_shape).collect::<Result<_>>()?;
    let spec = Spec { types, shapes };
    let elements: Vec<Element> = components.chunks(spec.types.len().max(1)).map(Element::from).collect();
    elements.iter().try_for_each(|element| spec.check_element(element))?;
    Ok(window(elements, spec))
}

fn restored_shape(dims: &Tensor) -> Result<PartialShape> {
    let dims = dims.values::<i64>()?;
    Ok(if dims.iter().all(|&dim| dim >= -1) { PartialShape::new(dims) } else { PartialShape::unknown() })
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

    fn held(&self) -> Option<&[Element]> {
        Some(&self.elements)
    }

    fn nesting(&self) -> usize {
        self.elements.iter().flatten().map(Tensor::nesting).max().unwrap_or(0)
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
