//! UnbatchDataset: the rows of the elements.

use super::random_access::check_index;
use super::rows::{batch_size, row, row_shape};
use super::saved::{read_list, write_list};
use crate::attrs::{DATASET, dataset_kernel, input_dataset};
use crate::dataset::{PendingElement, only};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter, full_name,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, failed_precondition};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "UnbatchDataset(input_dataset: variant) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalUnbatchDataset(input_dataset: variant) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_kernel(setup, |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let Spec { types, shapes } = input.spec().clone();
        let size = shapes.iter().find_map(|shape| shape.dim(0)).filter(|&size| size > 0);
        Ok(Unbatch { input, size, spec: Spec { types, shapes: shapes.iter().map(row_shape).collect() } })
    })
}

#[derive(Clone)]
struct Unbatch {
    input: DatasetRef,
    /// The number of rows of each element, if it is known and positive.
    size: Option<usize>,
    spec: Spec,
}

impl Dataset for Unbatch {
    fn kind(&self) -> &'static str {
        "Unbatch"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(Unbatch { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(UnbatchIterator {
            input: place.input(&self.input)?,
            batch: Element::new(),
            size: 0,
            next: 0,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        match (self.input.cardinality(), self.size) {
            (Cardinality::Finite(count), Some(size)) => Cardinality::Finite(count.saturating_mul(size as u64)),
            (Cardinality::Finite(_), None) => Cardinality::Unknown,
            (other, _) => other,
        }
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        check_index(self, "Unbatch", index)?;
        let size = self.size.ok_or_else(|| failed_precondition!("The number of rows is not known"))?;
        let mut batch = self.input.element_at(pipeline, index / size)?;
        Ok(Box::new(move |ctx| Poll::Ready(rows(&ready!(batch(ctx))?, index % size))))
    }
}

fn rows(batch: &Element, index: usize) -> Result<Element> {
    batch.iter().map(|component| row(component, index)).collect()
}

struct UnbatchIterator {
    input: Input,
    batch: Element,
    /// The number of rows of the batch, and the next of them.
    size: usize,
    next: usize,
    prefix: Arc<str>,
}

impl UnbatchIterator {
    fn begin(&mut self, batch: Element) -> Result<()> {
        (self.size, self.next) = (batch_size(&batch)?, 0);
        self.batch = batch;
        Ok(())
    }
}

impl Iterate for UnbatchIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        while self.next >= self.size {
            self.batch.clear();
            let Some(batch) = ready!(self.input.poll_next(ctx))? else { return Poll::Ready(Ok(None)) };
            self.begin(batch)?;
        }
        self.next += 1;
        Poll::Ready(rows(&self.batch, self.next - 1).map(Some))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        self.input.save(writer, prefix, &full_name(prefix, "input_impl_empty"))?;
        writer.int(prefix, &full_name(prefix, "current_index"), self.next as i64);
        writer.int(prefix, &full_name(prefix, "n"), self.size as i64);
        if self.next < self.size {
            write_list(writer, prefix, &full_name(prefix, "tensors"), &self.batch);
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        self.input.restore(reader, &prefix, "input_impl_empty")?;
        let (next, size) = (reader.count(&prefix, "current_index")?, reader.count(&prefix, "n")?);
        if next < size {
            let components = (0..).take_while(|index| reader.contains(&prefix, &format!("tensors[{index}]"))).count();
            let batch = read_list(reader, &prefix, "tensors", components)?;
            self.begin(batch)?;
            self.next = next;
        }
        Ok(())
    }
}
