//! LoadDataset: a dataset that SaveDataset wrote.

use super::late_input::{LateInput, Saved};
use super::reader::compression;
use crate::attrs::{DATASET, dataset_kernel, spec, string_scalar};
use crate::function::Function;
use crate::{Cardinality, Dataset, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter};
use io::fs::path::join;
use io::snapshot::Metadata;
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use ops::checkpoint::systems;
use status::{Result, not_found};
use std::sync::Arc;
use std::task::Poll;

pub(crate) const OPS: &[Op] = &[Op {
    def: "LoadDataset(path: string, reader_func_other_args: [Treader_func_args]) -> handle: variant; \
          output_types: list(type) >= 1; output_shapes: list(shape) >= 1; compression: string = \"\"; \
          reader_func: func; Treader_func_args: list(type) >= 0; stateful",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (systems, spec, function) = (systems(setup)?, spec(setup)?, Function::of(setup, "reader_func")?);
    let compression = compression(&setup.string("compression")?);
    dataset_kernel(setup, move |_, inputs| {
        let path = string_scalar(inputs, 0, "path")?;
        let metadata = Metadata::read(&systems, &path)?;
        let metadata = metadata.ok_or_else(|| not_found!("Could not find metadata file [{path}]"))?;
        let folder = join(&path, &metadata.run);
        let saved = Saved { systems: systems.clone(), folder, metadata, compression, spec: spec.clone() };
        Ok(Load { saved, function: function.capture(inputs.tensors_from(1)?) })
    })
}

struct Load {
    saved: Saved,
    function: Function,
}

impl Dataset for Load {
    fn kind(&self) -> &'static str {
        "Load"
    }

    fn spec(&self) -> &Spec {
        &self.saved.spec
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let function = self.function.in_pipeline(&place.pipeline)?;
        Ok(Box::new(LoadIterator(LateInput::new(function, self.saved.shards(0)?, place))))
    }

    fn cardinality(&self) -> Cardinality {
        match self.saved.metadata.elements {
            -1 => Cardinality::Infinite,
            count => u64::try_from(count).map_or(Cardinality::Unknown, Cardinality::Finite),
        }
    }
}

struct LoadIterator(LateInput);

impl Iterate for LoadIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        self.0.poll_next(ctx)
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.0.as_list()
    }

    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        self.0.poll_settle(ctx)
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        self.0.save(writer)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.0.restore(reader);
        Ok(())
    }
}
