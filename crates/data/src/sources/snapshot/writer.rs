//! The run of a snapshot that writes it.

use super::dataset::Snapshot;
use super::shards::{Choice, Shards, new_metadata, new_run};
use crate::{Dataset, FunctionRun, Input, Next, Place, PollContext, StateReader, StateWriter, full_name};
use io::fs::path::{basename, join};
use io::snapshot::Metadata;
use status::Result;
use std::sync::Arc;
use std::task::{Poll, ready};

/// Passes on the elements of the input and writes them.
pub(super) struct SnapshotWriter {
    dataset: Arc<Snapshot>,
    /// The folder of the snapshot.
    folder: String,
    pub(super) input: Input,
    choice: Choice,
    /// The number of the run and its shards, once it has begun.
    run: Option<(u64, Shards)>,
    has_ended: bool,
    prefix: Arc<str>,
}

impl SnapshotWriter {
    pub(super) fn new(
        dataset: Arc<Snapshot>,
        folder: String,
        function: Option<FunctionRun>,
        place: &Place,
    ) -> Result<SnapshotWriter> {
        let input = place.input_named(&dataset.input, &format!("{}::WriterIterator", place.prefix))?;
        let (choice, prefix) = (Choice::new(function), place.prefix.clone());
        Ok(SnapshotWriter { dataset, folder, input, choice, run: None, has_ended: false, prefix })
    }

    fn write_metadata(&self, run: u64, is_complete: bool) -> Result<()> {
        let metadata = new_metadata(basename(&self.folder).to_string(), run, &self.dataset.spec().types);
        Metadata { is_complete, ..metadata }.write(&self.dataset.systems, &self.folder)
    }

    fn open(&self, run: u64) -> Shards {
        let folder = join(&self.folder, &run.to_string());
        Shards::new(self.dataset.systems.clone(), folder, self.dataset.compression)
    }

    fn shards(&mut self) -> Result<&mut Shards> {
        if self.run.is_none() {
            let run = new_run();
            let shards = self.open(run);
            self.dataset.systems.create_dirs(&shards.folder)?;
            self.write_metadata(run, false)?;
            self.run = Some((run, shards));
        }
        match &mut self.run {
            Some((_, shards)) => Ok(shards),
            None => Err(status::internal!("The run of a snapshot did not begin")),
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.has_ended = true;
        self.shards()?.close()?;
        self.run.as_ref().map_or(Ok(()), |(run, _)| self.write_metadata(*run, true))
    }

    pub(super) fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
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
        Poll::Ready(self.shards().and_then(|shards| shards.write(shard, &element)).map(|()| Some(element)))
    }

    /// What was written so far becomes a file of its own.
    pub(super) fn end_chunk(&mut self) -> Result<()> {
        self.run.as_mut().map_or(Ok(()), |(_, shards)| shards.end_chunk())
    }

    /// TensorFlow continues the last file after it is restored.
    pub(super) fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let (run, chunk) = self.run.as_ref().map_or((0, 0), |(run, shards)| (*run, shards.chunk.saturating_sub(1)));
        let mut int = |key: &str, value: u64| writer.int(&self.prefix, &full_name(&self.prefix, key), value as i64);
        int("run_id", run);
        int("current_checkpoint_id", chunk);
        int("has_ended", u64::from(self.has_ended));
        self.input.save_present(writer)
    }

    pub(super) fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let run = reader.int(&self.prefix, "run_id")? as u64;
        self.has_ended = reader.int(&self.prefix, "has_ended").unwrap_or(0) != 0;
        if run != 0 {
            let mut shards = self.open(run);
            shards.chunk = reader.count(&self.prefix, "current_checkpoint_id")? as u64;
            self.run = Some((run, shards));
        }
        self.input.restore_present(reader)
    }
}
