//! DenseToSparseBatchDataset: joins elements of different sizes to a sparse tensor.

use super::batch::batch_size;
use super::rows::joined;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar};
use crate::budget::cost;
use crate::memory::{Held, LEAST_BYTES, check_fits};
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use smallvec::smallvec;
use status::{Code, Error, Result, internal, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};
use tensor::{DType, PartialShape, Tensor, Variant, VariantData};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "DenseToSparseBatchDataset(input_dataset: variant, batch_size: int64, row_shape: int64) -> \
              handle: variant; output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalDenseToSparseBatchDataset(input_dataset: variant, batch_size: int64, row_shape: int64) -> \
              handle: variant; output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_kernel(setup, |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        if input.spec().types.len() != 1 {
            return Err(invalid!("DenseToSparseBatchDataset only supports inputs with a single component."));
        }
        let size = batch_size(scalar(inputs, 1, "batch_size")?)?;
        let row = inputs.look(2)?;
        if row.shape().rank() != 1 {
            return Err(invalid!("row_shape must be a vector"));
        }
        let row = row.values::<i64>()?.to_vec();
        if let Some(dim) = row.iter().find(|&&dim| dim < -1) {
            return Err(invalid!("Dimension {dim} of row_shape must be >= -1"));
        }
        let shapes = vec![PartialShape::new(&[&[-1], &row[..]].concat())];
        Ok(DenseToSparseBatch { input, size, row, spec: Spec { types: vec![DType::VARIANT], shapes } })
    })
}

struct DenseToSparseBatch {
    input: DatasetRef,
    size: usize,
    /// The dimensions of the elements; -1 means the largest of the batch.
    row: Vec<i64>,
    spec: Spec,
}

impl Dataset for DenseToSparseBatch {
    fn kind(&self) -> &'static str {
        "DenseToSparseBatch"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let size = self.size as u64;
        check_fits("DenseToSparseBatch", size, LEAST_BYTES, &self.input)?;
        let (input, held) = (place.input(&self.input)?, Held::new("DenseToSparseBatch", size));
        let prefix = place.prefix.clone();
        Ok(Box::new(DenseToSparseIterator { input, parts: Vec::new(), held, dataset: self, prefix }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().map(|count| count.div_ceil(self.size as u64))
    }
}

struct DenseToSparseIterator {
    input: Input,
    /// The elements of the next batch that have arrived.
    parts: Vec<Tensor>,
    held: Held,
    dataset: Arc<DenseToSparseBatch>,
    prefix: Arc<str>,
}

impl DenseToSparseIterator {
    fn poll_parts(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        while self.parts.len() < self.dataset.size {
            let Some(element) = ready!(self.input.poll_next(ctx))? else { break };
            let bytes = cost(&element);
            let part = element.into_iter().next().ok_or_else(|| internal!("an element has no component"))?;
            check(&part, &self.dataset.row)?;
            let held = self.held.add(bytes);
            self.parts.push(part);
            if held.is_err() {
                self.parts = Vec::new();
                self.input.end();
            }
            held?;
        }
        Poll::Ready(Ok(()))
    }
}

/// An error if an element does not fit into a row.
fn check(part: &Tensor, row: &[i64]) -> Result<()> {
    let (shape, wanted) = (part.shape(), PartialShape::new(row));
    if shape.rank() != row.len() {
        return Err(invalid!("Input element had shape ({shape}) that is incompatible with the row shape ({wanted})."));
    }
    let is_larger = shape.to_i64().iter().zip(row).any(|(&dim, &most)| most != -1 && dim > most);
    if is_larger {
        let message = format!("Input element had shape ({shape}) that is larger than the row shape ({wanted}).");
        return Err(Error::new(Code::DataLoss, message));
    }
    Ok(())
}

/// The sparse tensor of a batch: indices, values and dense shape as variants.
fn sparse(parts: &[Tensor], row: &[i64]) -> Result<Tensor> {
    let flat = parts.iter().map(|part| part.clone().reshaped([part.elements()])).collect::<Result<Vec<_>>>()?;
    let values = joined(&flat)?;
    let mut indices = Vec::with_capacity(values.elements() * (row.len() + 1));
    for (index, part) in parts.iter().enumerate() {
        push_indices(&mut indices, index, part.shape().dims());
    }
    let indices = Tensor::from_slice([values.elements(), row.len() + 1], &indices)?;
    let dense = Tensor::vector(&dense_shape(parts, row));
    Tensor::from_variants([3], [indices, values, dense].into_iter().map(boxed).collect())
}

/// The positions of all elements of a row, in order.
fn push_indices(indices: &mut Vec<i64>, row: usize, dims: &[usize]) {
    let mut position = vec![0; dims.len()];
    for _ in 0..dims.iter().product() {
        indices.push(row as i64);
        indices.extend_from_slice(&position);
        for (place, &dim) in position.iter_mut().zip(dims).rev() {
            *place += 1;
            if *place < dim as i64 {
                break;
            }
            *place = 0;
        }
    }
}

fn dense_shape(parts: &[Tensor], row: &[i64]) -> Vec<i64> {
    let largest = |axis: usize| parts.iter().map(|part| part.shape().dims()[axis] as i64).max().unwrap_or(0);
    let dims = row.iter().enumerate().map(|(axis, &dim)| if dim == -1 { largest(axis) } else { dim });
    std::iter::once(parts.len() as i64).chain(dims).collect()
}

/// A tensor as a variant, with TensorFlow's name of the type.
fn boxed(tensor: Tensor) -> Variant {
    let type_name = "tensorflow::Tensor".to_string();
    Variant::Data(Arc::new(VariantData { type_name, tensors: vec![tensor], ..VariantData::default() }))
}

impl Iterate for DenseToSparseIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if let Err(error) = ready!(self.poll_parts(ctx)) {
            self.parts.clear();
            self.held.clear();
            return Poll::Ready(Err(error));
        }
        let parts = std::mem::take(&mut self.parts);
        self.held.clear();
        if parts.is_empty() {
            return Poll::Ready(Ok(None));
        }
        Poll::Ready(sparse(&parts, &self.dataset.row).map(|batch| Some(smallvec![batch])))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        super::saved::write_input(writer, &self.prefix, &self.input)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        super::saved::read_input(reader, &self.prefix, &mut self.input)
    }
}
