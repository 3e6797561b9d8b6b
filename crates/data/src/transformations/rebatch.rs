//! RebatchDataset: batches as several smaller ones, one for each replica.

use super::rows::row_range;
use super::saved::{read_input, read_list, write_input, write_list};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use crate::dataset::only;
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader,
    StateWriter, full_name,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "RebatchDataset(input_dataset: variant, num_replicas: int64) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; use_fallback: bool = true",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalRebatchDataset(input_dataset: variant, num_replicas: int64) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; use_fallback: bool = true",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        let replicas: i64 = scalar(inputs, 1, "num_replicas")?;
        if replicas <= 0 {
            return Err(invalid!("num_replicas must be greater than zero."));
        }
        Ok(Rebatch { input: input_dataset(inputs, 0)?, replicas: replicas as usize, spec: spec.clone() })
    })
}

/// Batches in parts for this many replicas, which is positive.
pub(crate) fn rebatch(input: DatasetRef, replicas: usize, spec: Spec) -> DatasetRef {
    Arc::new(Rebatch { input, replicas, spec })
}

#[derive(Clone)]
struct Rebatch {
    input: DatasetRef,
    replicas: usize,
    spec: Spec,
}

impl Dataset for Rebatch {
    fn kind(&self) -> &'static str {
        "Rebatch"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(Rebatch { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(RebatchIterator {
            input: place.input(&self.input)?,
            replicas: self.replicas,
            batch: Element::new(),
            slice: 0,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct RebatchIterator {
    input: Input,
    replicas: usize,
    /// The batch that is divided, and the replica whose part comes next.
    batch: Element,
    slice: usize,
    prefix: Arc<str>,
}

/// An error unless all components have rows.
fn check(batch: &[Tensor]) -> Result<()> {
    match batch.iter().position(|component| component.shape().rank() == 0) {
        Some(index) => Err(invalid!(
            "Cannot rebatch dataset: All components must have at least one dimension. Perhaps your input dataset is not \
             batched? Component {index} is scalar."
        )),
        None => Ok(()),
    }
}

/// The part of one replica; the last ones may be empty.
fn part(component: &Tensor, replicas: usize, replica: usize) -> Result<Tensor> {
    let count = component.shape().dims().first().copied().unwrap_or(0);
    let size = count.div_ceil(replicas);
    let start = size.saturating_mul(replica).min(count);
    row_range(component, start..start.saturating_add(size).min(count))
}

impl Iterate for RebatchIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.slice == 0 {
            let Some(batch) = ready!(self.input.poll_next(ctx))? else { return Poll::Ready(Ok(None)) };
            check(&batch)?;
            self.batch = batch;
        }
        let parts = self.batch.iter().map(|component| part(component, self.replicas, self.slice));
        let parts = parts.collect::<Result<Element>>()?;
        self.slice = (self.slice + 1) % self.replicas;
        Poll::Ready(Ok(Some(parts)))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        write_input(writer, prefix, &self.input)?;
        writer.int(prefix, &full_name(prefix, "slice_number"), self.slice as i64);
        if self.slice != 0 {
            write_list(writer, prefix, &full_name(prefix, "tensors"), &self.batch);
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        read_input(reader, &prefix, &mut self.input)?;
        self.slice = reader.count(&prefix, "slice_number")? % self.replicas;
        if self.slice != 0 {
            let count = (0..).take_while(|index| reader.contains(&prefix, &format!("tensors[{index}]"))).count();
            self.batch = read_list(reader, &prefix, "tensors", count)?;
            check(&self.batch)?;
        }
        Ok(())
    }
}
