//! RebatchDatasetV2: the rows of batches in batches of other sizes, in turns.

use super::rows::{batch_size, joined, row_range};
use super::saved::{read_input, read_list, write_input, write_list};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use crate::budget::cost;
use crate::dataset::only;
use crate::memory::Held;
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader,
    StateWriter, full_name,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, internal, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "RebatchDatasetV2(input_dataset: variant, batch_sizes: int64, drop_remainder: bool) -> handle: variant; \
          output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        let sizes = inputs.look(1)?;
        if sizes.shape().rank() > 1 {
            return Err(invalid!("`batch_sizes` must be a scalar or a vector."));
        }
        let sizes: Vec<usize> = sizes.values::<i64>()?.iter().map(|&size| size_of(size)).collect::<Result<_>>()?;
        if sizes.is_empty() {
            return Err(invalid!("`batch_sizes` must not be empty."));
        }
        let drops_remainder = scalar(inputs, 2, "drop_remainder")?;
        Ok(RebatchV2 { input: input_dataset(inputs, 0)?, sizes, drops_remainder, spec: spec.clone() })
    })
}

fn size_of(size: i64) -> Result<usize> {
    usize::try_from(size).map_err(|_| invalid!("`batch_sizes` must not be negative, but one is {size}."))
}

#[derive(Clone)]
struct RebatchV2 {
    input: DatasetRef,
    /// Not empty.
    sizes: Vec<usize>,
    drops_remainder: bool,
    spec: Spec,
}

impl Dataset for RebatchV2 {
    fn kind(&self) -> &'static str {
        "RebatchV2"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(RebatchV2 { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(RebatchIterator {
            input: place.input(&self.input)?,
            batch: Element::new(),
            rest: 0..0,
            parts: Vec::new(),
            held: Held::new("RebatchV2", self.sizes.iter().copied().max().unwrap_or(0) as u64),
            gathered: 0,
            turn: 0,
            dataset: self,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct RebatchIterator {
    input: Input,
    /// The batch of the input that is divided, and its rows that are left.
    batch: Element,
    rest: std::ops::Range<usize>,
    /// The parts of the next batch, and the number of their rows.
    parts: Vec<Element>,
    held: Held,
    gathered: usize,
    /// The place in the list of sizes.
    turn: usize,
    dataset: Arc<RebatchV2>,
    prefix: Arc<str>,
}

impl RebatchIterator {
    fn poll_gather(&mut self, ctx: &mut PollContext<'_>, wanted: usize) -> Poll<Result<()>> {
        while self.gathered < wanted {
            if self.rest.is_empty() {
                let Some(batch) = ready!(self.input.poll_next(ctx))? else { break };
                self.rest = 0..batch_size(&batch)?;
                self.batch = batch;
            }
            if !self.rest.is_empty() {
                self.take_part(wanted - self.gathered)?; // batches without rows may come without end
            }
        }
        Poll::Ready(Ok(()))
    }

    fn take_part(&mut self, most: usize) -> Result<()> {
        let range = self.rest.start..self.rest.end.min(self.rest.start.saturating_add(most));
        let part = self.batch.iter().map(|component| row_range(component, range.clone()));
        let part = part.collect::<Result<Element>>()?;
        let held = self.held.add(cost(&part));
        self.parts.push(part);
        self.gathered += range.len();
        self.rest.start = range.end;
        if held.is_err() {
            self.parts = Vec::new();
            self.rest = 0..0;
            self.input.end();
        }
        held
    }

    /// A batch of the parts.
    fn finish(&mut self, wanted: usize) -> Result<Option<Element>> {
        let (parts, gathered) = (std::mem::take(&mut self.parts), std::mem::take(&mut self.gathered));
        self.held.clear();
        self.turn = (self.turn + 1) % self.dataset.sizes.len();
        if wanted == 0 {
            return empty(&self.dataset.spec).map(Some);
        }
        if gathered == 0 || self.dataset.drops_remainder && gathered < wanted {
            return Ok(None);
        }
        let components = parts.first().map_or(0, |part| part.len());
        (0..components).map(|index| joined(&column(&parts, index)?)).collect::<Result<_>>().map(Some)
    }
}

/// One component of all parts.
fn column(parts: &[Element], index: usize) -> Result<Vec<Tensor>> {
    let column = parts.iter().map(|part| part.get(index).cloned()).collect::<Option<_>>();
    column.ok_or_else(|| internal!("an element has no component {index}"))
}

/// A batch without rows: unknown dimensions are zero.
fn empty(spec: &Spec) -> Result<Element> {
    spec.types.iter().zip(&spec.shapes).map(|(&dtype, shape)| empty_component(dtype, shape)).collect()
}

fn empty_component(dtype: DType, shape: &PartialShape) -> Result<Tensor> {
    let dims = shape.dims().unwrap_or(&[0]).iter().map(|&dim| usize::try_from(dim).unwrap_or(0));
    let dims = dims.enumerate().map(|(axis, dim)| if axis == 0 { 0 } else { dim });
    Tensor::zeros_of(dtype, dims.collect::<Shape>())
}

impl Iterate for RebatchIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.input.has_ended() && self.rest.is_empty() {
            return Poll::Ready(Ok(None));
        }
        let wanted = self.dataset.sizes[self.turn];
        ready!(self.poll_gather(ctx, wanted))?;
        Poll::Ready(self.finish(wanted))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        write_input(writer, prefix, &self.input)?;
        writer.int(prefix, &full_name(prefix, "batch_sizes_index"), self.turn as i64);
        let offset = if self.rest.is_empty() { -1 } else { self.rest.start as i64 };
        writer.int(prefix, &full_name(prefix, "offset"), offset);
        if !self.rest.is_empty() {
            write_list(writer, prefix, &full_name(prefix, "tensors"), &self.batch);
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        read_input(reader, &prefix, &mut self.input)?;
        self.turn = reader.count(&prefix, "batch_sizes_index")? % self.dataset.sizes.len();
        let Ok(offset) = usize::try_from(reader.int(&prefix, "offset")?) else { return Ok(()) };
        let count = (0..).take_while(|index| reader.contains(&prefix, &format!("tensors[{index}]"))).count();
        self.batch = read_list(reader, &prefix, "tensors", count)?;
        self.rest = offset..batch_size(&self.batch)?;
        Ok(())
    }
}
