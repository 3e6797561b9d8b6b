//! SaveDataset and SaveDatasetV2: write the elements of a dataset to files.

use super::reader::compression;
use super::shards::{Choice, Shards, new_metadata, new_run};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, string_scalar};
use crate::consume::consume;
use crate::function::Function;
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
    full_name,
};
use io::fs::path::join;
use io::snapshot::Metadata;
use io::{Compression, FileSystems};
use op::shapes;
use op::{Grad, Home, Inputs, Kernel, Op, PLAIN, Setup, later, outputs};
use ops::checkpoint::systems;
use status::{Result, unimplemented_op};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SaveDataset(input_dataset: variant, path: string, shard_func_other_args: [Tshard_func_args]); \
              compression: string = \"\"; shard_func: func; use_shard_func: bool = true; \
              Tshard_func_args: list(type) >= 0; stateful",
        shape: shapes::none,
        grad: Grad::Stop,
        kernel: save_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SaveDatasetV2(input_dataset: variant, path: string, shard_func_other_args: [Tshard_func_args]) -> \
              handle: variant; compression: string = \"\"; shard_func: func; use_shard_func: bool = true; \
              Tshard_func_args: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: dataset_of_saved,
        facts: DATASET,
    },
    Op {
        def: "DistributedSave(dataset: variant, directory: string, address: string); metadata: string = \"\"; stateful",
        shape: shapes::none,
        grad: Grad::Stop,
        kernel: |_| {
            Err(unimplemented_op!(
                "DistributedSave needs TensorFlow's dataset service, which Flowgrid does not have; save the dataset on \
                 one task (tf.data.Dataset.save)"
            ))
        },
        facts: PLAIN,
    },
];

/// What is read from the attributes.
struct Options {
    systems: Arc<FileSystems>,
    compression: Compression,
    function: Option<Function>,
}

impl Options {
    fn of(setup: &Setup<'_>) -> Result<Options> {
        let uses_function = setup.bool("use_shard_func")?;
        Ok(Options {
            systems: systems(setup)?,
            compression: compression(&setup.string("compression")?),
            function: uses_function.then(|| Function::of(setup, "shard_func")).transpose()?,
        })
    }

    fn dataset(&self, inputs: &mut Inputs) -> Result<Save> {
        let captured = inputs.tensors_from(2)?;
        Ok(Save {
            input: input_dataset(inputs, 0)?,
            path: string_scalar(inputs, 1, "path")?,
            systems: self.systems.clone(),
            compression: self.compression,
            function: self.function.as_ref().map(|function| function.capture(captured)),
        })
    }
}

fn save_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, options) = (Home::of(setup), Options::of(setup)?);
    Ok(later(move |ctx, mut inputs, done| match options.dataset(&mut inputs) {
        Err(error) => done(Err(error)),
        Ok(dataset) => {
            consume(ctx, &home, Arc::new(dataset), (), |(), _| Ok(()), |()| Ok(outputs![]), done);
        }
    }))
}

fn dataset_of_saved(setup: &Setup<'_>) -> Result<Kernel> {
    let options = Options::of(setup)?;
    dataset_kernel(setup, move |_, inputs| options.dataset(inputs))
}

struct Save {
    input: DatasetRef,
    path: String,
    systems: Arc<FileSystems>,
    compression: Compression,
    /// Chooses the shard of an element; without it there is one shard.
    function: Option<Function>,
}

impl Dataset for Save {
    fn kind(&self) -> &'static str {
        "SaveV2"
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let function = self.function.as_ref().map(|function| function.in_pipeline(&place.pipeline)).transpose()?;
        Ok(Box::new(SaveIterator {
            input: place.input(&self.input)?,
            choice: Choice::new(function),
            dataset: self,
            run: None,
            count: 0,
            has_ended: false,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}

struct SaveIterator {
    dataset: Arc<Save>,
    input: Input,
    choice: Choice,
    /// The number of the run and its shards, once it has begun.
    run: Option<(u64, Shards)>,
    count: i64,
    has_ended: bool,
    prefix: Arc<str>,
}

impl SaveIterator {
    fn begin(&mut self, run: u64) -> Result<&mut Shards> {
        let dataset = &self.dataset;
        let folder = join(&dataset.path, &run.to_string());
        dataset.systems.create_dirs(&folder)?;
        self.metadata(run).write(&dataset.systems, &dataset.path)?;
        let shards = Shards::new(dataset.systems.clone(), folder, dataset.compression);
        Ok(&mut self.run.insert((run, shards)).1)
    }

    fn metadata(&self, run: u64) -> Metadata {
        new_metadata(String::new(), run, &self.dataset.spec().types)
    }

    fn shards(&mut self) -> Result<&mut Shards> {
        match self.run {
            None => self.begin(new_run()),
            Some((_, ref mut shards)) => Ok(shards),
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.has_ended = true;
        self.shards()?.close()?;
        let Some((run, _)) = self.run else { return Ok(()) };
        let metadata = Metadata { elements: self.count, is_complete: true, ..self.metadata(run) };
        metadata.write(&self.dataset.systems, &self.dataset.path)
    }

    fn poll(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.has_ended {
            return Poll::Ready(Ok(None));
        }
        if let Err(error) = self.shards() {
            return Poll::Ready(Err(error));
        }
        let (shard, element) = match ready!(self.choice.poll_chosen(&mut self.input, ctx)) {
            Ok(Some(chosen)) => chosen,
            Ok(None) => return Poll::Ready(self.finish().map(|()| None)),
            Err(error) => return Poll::Ready(Err(error)),
        };
        self.count += 1;
        Poll::Ready(self.shards().and_then(|shards| shards.write(shard, &element)).map(|()| Some(element)))
    }
}

impl Iterate for SaveIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        self.poll(ctx)
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    /// What was written so far becomes a file of its own.
    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        ready!(crate::iterate::settle_all(self.input.as_list(), ctx))?;
        Poll::Ready(self.shards().and_then(Shards::end_chunk))
    }

    /// TensorFlow continues the last file after it is restored.
    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        if let Some((run, shards)) = &self.run {
            let mut int = |key: &str, value: u64| writer.int(&self.prefix, &full_name(&self.prefix, key), value as i64);
            int("run_id", *run);
            int("current_checkpoint_id", shards.chunk.saturating_sub(1));
            int("num_elements", self.count as u64);
            int("has_ended", u64::from(self.has_ended));
        }
        self.input.save_present(writer)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let run = reader.int(&self.prefix, "run_id")? as u64;
        self.has_ended = reader.int(&self.prefix, "has_ended").unwrap_or(0) != 0;
        self.count = reader.int(&self.prefix, "num_elements").unwrap_or(0);
        let chunk = reader.count(&self.prefix, "current_checkpoint_id")? as u64;
        if !self.has_ended {
            self.begin(run)?.chunk = chunk;
        }
        self.input.restore_present(reader)
    }
}
