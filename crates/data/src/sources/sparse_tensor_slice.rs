//! SparseTensorSliceDataset: the rows of a sparse tensor along its first dimension, each a sparse tensor.

use crate::attrs::{DATASET, dataset_kernel};
use crate::{Cardinality, Dataset, Element, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter};
use op::shapes;
use op::{Grad, Inputs, Kernel, Op, Setup};
use smallvec::smallvec;
use status::{Result, invalid, unimplemented_op};
use std::sync::Arc;
use std::task::Poll;
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseTensorSliceDataset(indices: int64, values: Tvalues, dense_shape: int64) -> handle: variant; \
          Tvalues: type; stateful",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_kernel(setup, |_, inputs| {
        check(inputs)?;
        let (indices, values, dense_shape) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        if let Some(size) = dense_shape.values::<i64>()?.iter().find(|&&size| size < 0) {
            return Err(invalid!("Expected shape dimensions to be non-negative, got {size}"));
        }
        let shape = Shape::checked(dense_shape.values()?)?;
        let rank = shape.rank() as i64;
        let spec = Spec {
            types: vec![DType::I64, values.dtype(), DType::I64],
            shapes: vec![PartialShape::new(&[-1, rank - 1]), PartialShape::new(&[-1]), PartialShape::new(&[rank - 1])],
        };
        let row_shape = dense_shape.slice_elements(1, [shape.rank() - 1])?;
        Ok(SparseTensorSlice { indices, values, row_shape, rows: shape[0] as i64, spec })
    })
}

fn check(inputs: &Inputs) -> Result<()> {
    let (indices, values, shape) = (inputs.look(0)?, inputs.look(1)?, inputs.look(2)?);
    let &[entries, rank] = indices.shape().dims() else {
        return Err(invalid!("Input indices must be a matrix. Got: {}", indices.shape()));
    };
    if values.shape().rank() != 1 {
        return Err(invalid!("Input values must be a vector. Got: {}", values.shape()));
    }
    if shape.shape().rank() != 1 {
        return Err(invalid!("Input shape must be a vector. Got: {}", shape.shape()));
    }
    if values.elements() != entries {
        return Err(invalid!(
            "Number of values must match first dimension of indices. Got {} values, indices shape: {}",
            values.elements(),
            indices.shape()
        ));
    }
    if shape.elements() != rank {
        return Err(invalid!(
            "Number of dimensions must match second dimension of indices. Got {} dimensions, indices shape: {}",
            shape.elements(),
            indices.shape()
        ));
    }
    if rank == 0 {
        return Err(invalid!("The shape argument requires at least one element."));
    }
    check_order(indices.values()?, rank)
}

fn check_order(indices: &[i64], rank: usize) -> Result<()> {
    let rows = std::iter::once(-1).chain(indices.chunks_exact(rank).map(|index| index[0]));
    if rows.is_sorted() {
        return Ok(());
    }
    Err(unimplemented_op!(
        "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered input is not currently \
         supported."
    ))
}

struct SparseTensorSlice {
    indices: Tensor,
    values: Tensor,
    row_shape: Tensor,
    rows: i64,
    spec: Spec,
}

impl SparseTensorSlice {
    fn rank(&self) -> usize {
        self.row_shape.elements() + 1
    }

    /// The row of an entry; none behind the last entry.
    fn row_of(&self, entry: usize) -> Option<i64> {
        self.indices.values::<i64>().ok()?.get(entry.checked_mul(self.rank())?).copied()
    }

    /// Indices and values of the entries from `begin` on that are in the same row, and where the next row begins.
    fn row(&self, begin: usize) -> Result<(Tensor, Tensor, usize)> {
        let (indices, rank) = (self.indices.values::<i64>()?, self.rank());
        let row = self.row_of(begin);
        let end = (begin..self.values.elements()).find(|&entry| self.row_of(entry) != row);
        let end = end.unwrap_or(self.values.elements());
        let own: Vec<i64> =
            indices[begin * rank..end * rank].chunks_exact(rank).flat_map(|index| &index[1..]).copied().collect();
        let values = self.values.slice_elements(begin, [end - begin])?;
        Ok((Tensor::from_slice([end - begin, rank - 1], &own)?, values, end))
    }

    fn empty_row(&self) -> Result<(Tensor, Tensor)> {
        Ok((Tensor::zeros::<i64>([0, self.rank() - 1])?, self.values.slice_elements(0, [0])?))
    }
}

impl Dataset for SparseTensorSlice {
    fn kind(&self) -> &'static str {
        "SparseTensorSlice"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(RowIterator { dataset: self, row: 0, entry: 0, next: None, prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Finite(self.rows as u64)
    }
}

struct RowIterator {
    dataset: Arc<SparseTensorSlice>,
    row: i64,
    /// The first entry that was not read.
    entry: usize,
    /// The next row with entries, and those, once they were read.
    next: Option<(i64, Tensor, Tensor)>,
    prefix: Arc<str>,
}

impl RowIterator {
    fn next(&mut self) -> Result<Option<Element>> {
        if self.row >= self.dataset.rows {
            return Ok(None);
        }
        while self.next.as_ref().is_none_or(|next| next.0 < self.row)
            && let Some(row) = self.dataset.row_of(self.entry)
        {
            let (indices, values, end) = self.dataset.row(self.entry)?;
            self.entry = end;
            self.next = Some((row, indices, values));
        }
        let (indices, values) = match self.next.take_if(|next| next.0 == self.row) {
            Some((_, indices, values)) => (indices, values),
            None => self.dataset.empty_row()?,
        };
        self.row += 1;
        Ok(Some(smallvec![indices, values, self.dataset.row_shape.clone()]))
    }
}

impl Iterate for RowIterator {
    fn poll_next(&mut self, _: &mut PollContext<'_>) -> Next {
        Poll::Ready(self.next())
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        writer.int(&self.prefix, "i", self.row);
        writer.int(&self.prefix, "iter_loc", self.entry as i64);
        let next = self.next.as_ref().filter(|next| self.row <= next.0);
        writer.int(&self.prefix, "next_non_empty_i_", next.map_or(-1, |next| next.0));
        if let Some((_, indices, values)) = next {
            writer.tensor(&self.prefix, "next_indices_", indices.clone());
            writer.tensor(&self.prefix, "next_values_", values.clone());
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.row = reader.count(&self.prefix, "i")? as i64;
        self.entry = reader.count(&self.prefix, "iter_loc")?;
        let next = reader.int(&self.prefix, "next_non_empty_i_")?;
        self.next = None;
        if self.row <= next {
            let tensor = |key| reader.tensor(&self.prefix, key);
            self.next = Some((next, tensor("next_indices_")?, tensor("next_values_")?));
        }
        Ok(())
    }
}
