//! IgnoreErrorsDataset: the elements that can be computed.

use super::saved::{read_input_as, write_input_as};
use crate::attrs::{DATASET, dataset_kernel, input_dataset};
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Code, Result};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "IgnoreErrorsDataset(input_dataset: variant) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; log_warning: bool = false",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalIgnoreErrorsDataset(input_dataset: variant) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; log_warning: bool = false",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let logs = setup.bool("log_warning")?;
    dataset_kernel(setup, move |_, inputs| Ok(IgnoreErrors { input: input_dataset(inputs, 0)?, logs }))
}

struct IgnoreErrors {
    input: DatasetRef,
    logs: bool,
}

impl Dataset for IgnoreErrors {
    fn kind(&self) -> &'static str {
        "IgnoreErrors"
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let input = place.input(&self.input)?;
        Ok(Box::new(IgnoreErrorsIterator { input, logs: self.logs, prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct IgnoreErrorsIterator {
    input: Input,
    logs: bool,
    prefix: Arc<str>,
}

impl Iterate for IgnoreErrorsIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        loop {
            match ready!(self.input.poll_next(ctx)) {
                Err(error) if error.code != Code::Cancelled => {
                    if self.logs {
                        tracing::warn!("An element of {} is left out: {error}", self.prefix);
                    }
                }
                next => return Poll::Ready(next),
            }
        }
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        write_input_as(writer, &self.prefix, "input_impls_empty", &self.input)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        read_input_as(reader, &self.prefix, "input_impls_empty", &mut self.input)
    }
}
