//! PrefetchDataset: reads its input in the background.

use super::saved::{read_input, write_input};
use crate::ahead::Ahead;
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar};
use crate::budget::{STAGE_BYTES, Sizing};
use crate::dataset::{PendingElement, only};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, invalid};
use std::sync::Arc;
use std::task::Poll;

/// `slack_period` delays TensorFlow's reading after each period, to leave the processor to what runs then; the elements do
/// not depend on it, and it has no effect here.
pub(crate) const OPS: &[Op] = &[Op {
    def: "PrefetchDataset(input_dataset: variant, buffer_size: int64) -> handle: variant; \
          output_types: list(type) >= 1; output_shapes: list(shape) >= 1; slack_period: int = 0; \
          legacy_autotune: bool = true; buffer_size_min: int = 0; metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

/// The buffer size that leaves the choice to us.
const AUTOTUNE: i64 = -1;
/// The size of the buffer if the choice is ours and must not change.
const FIXED_SIZE: usize = 8;

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let least = usize::try_from(setup.int("buffer_size_min")?).unwrap_or(0);
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let size = match scalar::<i64>(inputs, 1, "buffer_size")? {
            AUTOTUNE => Size::Chosen { least: least.max(1) },
            size => Size::Given(usize::try_from(size).map_err(|_| {
                invalid!("buffer_size must be >= 0 or set buffer_size to be {AUTOTUNE} for auto-tuning")
            })?),
        };
        Ok(Prefetch { input, size })
    })
}

/// A prefetch whose buffer has the size that we choose.
pub(crate) fn chosen(input: DatasetRef) -> DatasetRef {
    Arc::new(Prefetch { input, size: Size::Chosen { least: 1 } })
}

#[derive(Clone, Copy)]
enum Size {
    Given(usize),
    Chosen { least: usize },
}

#[derive(Clone)]
struct Prefetch {
    input: DatasetRef,
    size: Size,
}

impl Dataset for Prefetch {
    fn kind(&self) -> &'static str {
        "Prefetch"
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(Prefetch { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let input = place.input(&self.input)?;
        let pipeline = &place.pipeline;
        let given = || pipeline.budget().share(Sizing::Given, STAGE_BYTES);
        let chosen = || pipeline.budget().share(Sizing::Chosen, usize::MAX);
        let source = match self.size {
            Size::Given(0) => Source::Direct(input),
            Size::Given(size) => Source::Ahead(Ahead::new(pipeline, input, size, given())),
            Size::Chosen { least } if pipeline.options().autotune => {
                Source::Ahead(Ahead::new(pipeline, input, least, chosen()).adapting())
            }
            Size::Chosen { least } => Source::Ahead(Ahead::new(pipeline, input, least.max(FIXED_SIZE), chosen())),
        };
        Ok(Box::new(PrefetchIterator { source, prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn check_random_indexing(&self, inputs: Vec<Result<()>>) -> Result<()> {
        inputs.into_iter().collect()
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        self.input.element_at(pipeline, index)
    }
}

enum Source {
    Direct(Input),
    Ahead(Ahead),
}

struct PrefetchIterator {
    source: Source,
    prefix: Arc<str>,
}

impl Iterate for PrefetchIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        match &mut self.source {
            Source::Direct(input) => input.poll_next(ctx),
            Source::Ahead(ahead) => ahead.poll_next(ctx),
        }
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        match &mut self.source {
            Source::Direct(input) => input.as_list(),
            Source::Ahead(_) => Vec::new(),
        }
    }

    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        match &mut self.source {
            Source::Direct(input) => crate::iterate::settle_all(input.as_list(), ctx),
            Source::Ahead(ahead) => ahead.poll_settle(ctx),
        }
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        match &self.source {
            Source::Direct(input) => {
                write_input(writer, &self.prefix, input)?;
                writer.int(&self.prefix, "buffer_size", 0);
                Ok(())
            }
            Source::Ahead(ahead) => ahead.with(|buffer, input| {
                write_input(writer, &self.prefix, input)?;
                writer.int(&self.prefix, "buffer_size", buffer.len() as i64);
                for (index, next) in buffer.iter().enumerate() {
                    save_buffered(writer, &buffered_prefix(&self.prefix, index), next);
                }
                Ok(())
            }),
        }
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        match &mut self.source {
            Source::Direct(input) => read_input(reader, &self.prefix, input),
            Source::Ahead(ahead) => ahead.with(|buffer, input| {
                read_input(reader, &self.prefix, input)?;
                for index in 0..reader.count(&self.prefix, "buffer_size")? {
                    buffer.push_back(restored(reader, &buffered_prefix(&self.prefix, index))?);
                }
                Ok(())
            }),
        }
    }
}

fn buffered_prefix(prefix: &str, index: usize) -> String {
    format!("{prefix}::{index}")
}

fn save_buffered(writer: &mut StateWriter, prefix: &str, next: &Result<Element>) {
    writer.status(prefix, "status.code", "status.error_message", next);
    let Ok(element) = next else { return };
    writer.int(prefix, "buffer.size", element.len() as i64);
    for (index, component) in element.iter().enumerate() {
        writer.tensor(prefix, &format!("buffer[{index}]"), component.clone());
    }
}

fn restored(reader: &StateReader, prefix: &str) -> Result<Result<Element>> {
    match reader.status(prefix, "status.code", "status.error_message")? {
        Err(error) => Ok(Err(error)),
        Ok(()) => {
            let count = reader.count(prefix, "buffer.size")?;
            Ok(Ok(reader.tensors(prefix, count, |index| format!("buffer[{index}]"))?))
        }
    }
}
