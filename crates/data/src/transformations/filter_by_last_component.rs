//! FilterByLastComponentDataset: the elements whose last component is true, without it.

use super::filter::truth;
use super::saved::{read_input, write_input};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, spec};
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use smallvec::smallvec;
use status::{Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "FilterByLastComponentDataset(input_dataset: variant) -> output: variant; output_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        Ok(FilterByLastComponent { input: input_dataset(inputs, 0)?, spec: spec.clone() })
    })
}

struct FilterByLastComponent {
    input: DatasetRef,
    spec: Spec,
}

impl Dataset for FilterByLastComponent {
    fn kind(&self) -> &'static str {
        "FilterByLastComponent"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let input = place.input(&self.input)?;
        Ok(Box::new(FilterByLastComponentIterator { input, prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct FilterByLastComponentIterator {
    input: Input,
    prefix: Arc<str>,
}

impl Iterate for FilterByLastComponentIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        loop {
            let Some(mut element) = ready!(self.input.poll_next(ctx))? else { return Poll::Ready(Ok(None)) };
            let passes = element.pop().and_then(|last| truth(&smallvec![last]));
            if passes.ok_or_else(|| invalid!("Last tensor of an element must be a scalar bool."))? {
                return Poll::Ready(Ok(Some(element)));
            }
        }
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        write_input(writer, &self.prefix, &self.input)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        read_input(reader, &self.prefix, &mut self.input)
    }
}
