//! PaddedBatchDataset and PaddedBatchDatasetV2: joins consecutive elements, padded to a common shape.

use super::batch::batch_size;
use super::padded_stack::{Padding, padded_stack};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar};
use crate::budget::cost;
use crate::dataset::only;
use crate::memory::{Held, check_fits, least_bytes};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Inputs, Kernel, Op, Setup};
use status::{Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "PaddedBatchDataset(input_dataset: variant, batch_size: int64, padded_shapes: N * int64, \
              padding_values: [Toutput_types]) -> handle: variant; Toutput_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; N: int >= 1; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, "PaddedBatch"),
        facts: DATASET,
    },
    Op {
        def: "PaddedBatchDatasetV2(input_dataset: variant, batch_size: int64, padded_shapes: N * int64, \
              padding_values: [Toutput_types], drop_remainder: bool) -> handle: variant; \
              parallel_copy: bool = false; Toutput_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              N: int >= 1; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, "PaddedBatchV2"),
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>, kind: &'static str) -> Result<Kernel> {
    let shapes = usize::try_from(setup.int("N")?).unwrap_or(0);
    let values = setup.types("Toutput_types")?.len();
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let size = batch_size(scalar(inputs, 1, "batch_size")?)?;
        let end = 2 + shapes + values;
        let drops_remainder = inputs.len() > end && scalar(inputs, end, "drop_remainder")?;
        let paddings = paddings(inputs, input.spec(), shapes, values)?;
        let is_full = drops_remainder || input.cardinality() == Cardinality::Infinite;
        let spec = batch_spec(input.spec(), &paddings, is_full.then_some(size));
        Ok(PaddedBatch { kind, input, size, drops_remainder, paddings, spec })
    })
}

/// Types and shapes of batches, which follow from the inputs and not from the attributes. `size` is known if all batches
/// have the same.
fn batch_spec(input: &Spec, paddings: &[Padding], size: Option<usize>) -> Spec {
    let size = size.and_then(|size| i64::try_from(size).ok()).unwrap_or(-1);
    let shape = |padding: &Padding| PartialShape::new(&[&[size], padding.shape.dims().unwrap_or_default()].concat());
    Spec { types: input.types.clone(), shapes: paddings.iter().map(shape).collect() }
}

/// The shapes and values to which the components of elements are padded.
fn paddings(inputs: &mut Inputs, spec: &Spec, shapes: usize, values: usize) -> Result<Vec<Padding>> {
    let expected = spec.shapes.len();
    for (what, found) in [("shapes", shapes), ("values", values)] {
        if found != expected {
            return Err(invalid!(
                "Number of padded {what} ({found}) must match the number of components in the input dataset's elements \
                 ({expected})"
            ));
        }
    }
    let shapes: Vec<PartialShape> = inputs.tensors(2, shapes)?.iter().map(padded_shape).collect::<Result<_>>()?;
    let values = inputs.tensors(2 + shapes.len(), values)?;
    for (index, (value, dtype)) in values.iter().zip(&spec.types).enumerate() {
        if value.shape().rank() != 0 {
            return Err(invalid!("All padding values must be scalars"));
        }
        if value.dtype() != *dtype {
            return Err(invalid!(
                "Mismatched type between padding value {index} and input dataset's component {index}: {} vs. {dtype}",
                value.dtype()
            ));
        }
    }
    Ok(shapes.into_iter().zip(values).map(|(shape, value)| Padding { shape, value }).collect())
}

fn padded_shape(tensor: &Tensor) -> Result<PartialShape> {
    if tensor.shape().rank() != 1 {
        return Err(invalid!("All padded shapes must be vectors"));
    }
    let dims = tensor.values::<i64>()?;
    match dims.iter().find(|&&dim| dim < -1) {
        Some(dim) => Err(invalid!("Dimension {dim} must be >= -1")),
        None => Ok(PartialShape::new(dims)),
    }
}

#[derive(Clone)]
struct PaddedBatch {
    kind: &'static str,
    input: DatasetRef,
    size: usize,
    drops_remainder: bool,
    paddings: Vec<Padding>,
    spec: Spec,
}

impl Dataset for PaddedBatch {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(PaddedBatch { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        check_fits(self.kind, self.size as u64, least_bytes(self.input.spec()), &self.input)?;
        Ok(Box::new(PaddedBatchIterator {
            input: place.input(&self.input)?,
            held: Held::new(self.kind, self.size as u64),
            dataset: self,
            elements: Vec::new(),
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        let size = self.size as u64;
        self.input.cardinality().map(|count| if self.drops_remainder { count / size } else { count.div_ceil(size) })
    }
}

struct PaddedBatchIterator {
    input: Input,
    dataset: Arc<PaddedBatch>,
    /// The elements of the next batch that have arrived.
    elements: Vec<Element>,
    held: Held,
    prefix: Arc<str>,
}

impl PaddedBatchIterator {
    fn add(&mut self, element: Element) -> Result<()> {
        let held = self.held.add(cost(&element));
        self.elements.push(element);
        if held.is_err() {
            self.elements = Vec::new();
            self.input.end();
        }
        held
    }
}

impl Iterate for PaddedBatchIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        while self.elements.len() < self.dataset.size {
            match ready!(self.input.poll_next(ctx))? {
                Some(element) => self.add(element)?,
                None => break,
            }
        }
        let elements = std::mem::take(&mut self.elements);
        self.held.clear();
        if elements.is_empty() || self.dataset.drops_remainder && elements.len() < self.dataset.size {
            self.input.end();
            return Poll::Ready(Ok(None));
        }
        let paddings = self.dataset.paddings.iter().enumerate();
        let batch = paddings.map(|(index, padding)| padded_stack(&elements, index, padding));
        Poll::Ready(batch.collect::<Result<Element>>().map(Some))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        self.input.save(writer, &self.prefix, "exhausted")
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.input.restore(reader, &self.prefix, "exhausted")
    }
}
