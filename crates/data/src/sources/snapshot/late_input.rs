//! The dataset that a function makes of the shards of a saved dataset, once the function has returned.

use super::reader::{Nested, ShardReader};
use crate::dataset::dataset_and_stages;
use crate::{
    Call, DatasetRef, FunctionRun, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader, StateWriter,
    dataset_tensor,
};
use io::snapshot::{Metadata, shard_folders};
use io::{Compression, FileSystems};
use smallvec::smallvec;
use status::{Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};

/// A saved dataset, as its folder and metadata describe it.
pub(super) struct Saved {
    pub(super) systems: Arc<FileSystems>,
    /// The folder of the run.
    pub(super) folder: String,
    pub(super) metadata: Metadata,
    pub(super) compression: Compression,
    pub(super) spec: Spec,
}

impl Saved {
    /// The dataset of a snapshot with one shard, behind its first elements; none if nothing was written.
    pub(super) fn only_shard(&self, skip: u64) -> Result<Option<DatasetRef>> {
        let folder = shard_folders(&self.systems, &self.folder)?.into_iter().next();
        Ok(folder.map(|folder| -> DatasetRef { Arc::new(self.shard(folder, skip)) }))
    }

    fn shard(&self, folder: String, skip: u64) -> ShardReader {
        ShardReader {
            folder,
            skip,
            version: self.metadata.version,
            compression: self.compression,
            systems: self.systems.clone(),
            spec: self.spec.clone(),
        }
    }

    /// The datasets of all shards, of which `skip` elements were read in turns.
    pub(super) fn shards(&self, skip: u64) -> Result<DatasetRef> {
        let folders = shard_folders(&self.systems, &self.folder)?;
        let count = folders.len() as u64;
        let shard = |(index, folder): (usize, String)| {
            self.shard(folder, skip / count + u64::from(skip % count > index as u64)).tensor()
        };
        let mut datasets = folders.into_iter().enumerate().map(shard).collect::<Result<Vec<_>>>()?;
        if count > 0 {
            datasets.rotate_left((skip % count) as usize); // the first one has the next element
        }
        Ok(Arc::new(Nested::new(datasets)))
    }
}

/// An input whose dataset is returned by a function.
pub(super) struct LateInput {
    function: FunctionRun,
    shards: DatasetRef,
    pipeline: Arc<Pipeline>,
    prefix: Arc<str>,
    state: State,
    /// The state to continue from, until there is an input.
    saved: Option<Arc<StateReader>>,
}

enum State {
    New,
    Calling(Call),
    /// With the pipeline of the input.
    Ready(Input, Arc<Pipeline>),
}

impl LateInput {
    /// An input at the place of an iterator; the function gets the datasets of the shards.
    pub(super) fn new(function: FunctionRun, shards: DatasetRef, place: &Place) -> LateInput {
        let (pipeline, prefix) = (place.pipeline.clone(), place.prefix.clone());
        LateInput { function, shards, pipeline, prefix, state: State::New, saved: None }
    }

    fn poll_input(&mut self, ctx: &PollContext<'_>) -> Poll<Result<(&mut Input, &Arc<Pipeline>)>> {
        if let State::New = self.state {
            match dataset_tensor(self.shards.clone()) {
                Ok(shards) => self.state = State::Calling(self.function.call(smallvec![shards])),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if let State::Calling(call) = &mut self.state {
            let results = ready!(call.poll(ctx));
            self.state = State::New;
            match results.and_then(|results| self.begin(&results)) {
                Ok((input, pipeline)) => self.state = State::Ready(input, pipeline),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        match &mut self.state {
            State::Ready(input, pipeline) => Poll::Ready(Ok((input, pipeline))),
            _ => Poll::Pending,
        }
    }

    fn begin(&mut self, results: &[tensor::Tensor]) -> Result<(Input, Arc<Pipeline>)> {
        let [dataset] = results else { return Err(invalid!("reader_func returns more than one argument.")) };
        let (dataset, stages) = dataset_and_stages(dataset)?;
        let place = Place { pipeline: self.pipeline.nested(stages)?, prefix: self.prefix.clone() };
        // At its end too: TensorFlow's iterator always expects the state of its input.
        let mut input = place.input(&dataset)?.kept();
        if let Some(saved) = self.saved.take() {
            input.restore_present(&saved)?;
        }
        Ok((input, place.pipeline))
    }

    pub(super) fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        match ready!(self.poll_input(ctx)) {
            Ok((input, pipeline)) => input.poll_next(&mut ctx.below(pipeline)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    pub(super) fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        match ready!(self.poll_input(ctx)) {
            Ok((input, pipeline)) => crate::iterate::settle_all(input.as_list(), &mut ctx.below(pipeline)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    pub(super) fn as_list(&mut self) -> Vec<&mut dyn Iterate> {
        match &mut self.state {
            State::Ready(input, _) => input.as_list(),
            _ => Vec::new(),
        }
    }

    pub(super) fn save(&self, writer: &mut StateWriter) -> Result<()> {
        match &self.state {
            State::Ready(input, _) => input.save_present(writer),
            _ => Ok(()),
        }
    }

    /// Continues from a saved state as soon as there is an input.
    pub(super) fn restore(&mut self, reader: &Arc<StateReader>) {
        self.saved = Some(reader.clone());
    }
}
