//! Writes the elements of a dataset to the files of several shards; a function chooses the shard of each.

use crate::{Call, Element, FunctionRun, Input, PollContext};
use io::snapshot::{ElementWriter, Metadata, VERSION, chunk_path, shard_folder};
use io::{Compression, FileSystems};
use status::{Result, invalid};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{SystemTime, UNIX_EPOCH};
use tensor::{DType, Tensor};

/// The most shards that are written at once: each has an open file.
const MOST_SHARDS: usize = 4096;

/// The shards of one run.
pub(super) struct Shards {
    pub(super) systems: Arc<FileSystems>,
    /// The folder of the run.
    pub(super) folder: String,
    pub(super) compression: Compression,
    /// The number of the files that are written now, one in each shard.
    pub(super) chunk: u64,
    open: BTreeMap<i64, ElementWriter>,
}

impl Shards {
    pub(super) fn new(systems: Arc<FileSystems>, folder: String, compression: Compression) -> Shards {
        Shards { systems, folder, compression, chunk: 0, open: BTreeMap::new() }
    }

    /// Writes an element to a shard.
    pub(super) fn write(&mut self, shard: i64, element: &[Tensor]) -> Result<()> {
        if let Some(writer) = self.open.get_mut(&shard) {
            return writer.write(element);
        }
        if self.open.len() >= MOST_SHARDS {
            return Err(invalid!("A dataset cannot be saved in more than {MOST_SHARDS} shards"));
        }
        let folder = shard_folder(&self.folder, shard);
        self.systems.create_dirs(&folder)?;
        let path = chunk_path(&folder, self.chunk);
        let mut writer = ElementWriter::append(&self.systems, &path, self.compression)?;
        writer.write(element)?;
        self.open.insert(shard, writer);
        Ok(())
    }

    /// Completes the files.
    pub(super) fn close(&mut self) -> Result<()> {
        std::mem::take(&mut self.open).into_values().try_for_each(ElementWriter::close)
    }

    /// Completes the files; more elements go to new ones.
    pub(super) fn end_chunk(&mut self) -> Result<()> {
        self.chunk += 1;
        self.close()
    }
}

impl Drop for Shards {
    /// What was written remains readable.
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// The shard of an element, which a function computes.
pub(super) struct Choice {
    function: Option<FunctionRun>,
    pending: Option<(Element, Call)>,
}

impl Choice {
    /// The function chooses; without one there is one shard.
    pub(super) fn new(function: Option<FunctionRun>) -> Choice {
        Choice { function, pending: None }
    }

    /// The next element of an input and its shard; none at the end of the input.
    pub(super) fn poll_chosen(
        &mut self,
        input: &mut Input,
        ctx: &mut PollContext<'_>,
    ) -> Poll<Result<Option<(i64, Element)>>> {
        if self.pending.is_none() {
            let element = match ready!(input.poll_next(ctx)) {
                Ok(Some(element)) => element,
                Ok(None) => return Poll::Ready(Ok(None)),
                Err(error) => return Poll::Ready(Err(error)),
            };
            let Some(function) = &self.function else { return Poll::Ready(Ok(Some((0, element)))) };
            let call = function.call(element.clone());
            self.pending = Some((element, call));
        }
        let Some((element, mut call)) = self.pending.take() else { return Poll::Pending };
        match call.poll(ctx) {
            Poll::Pending => {
                self.pending = Some((element, call));
                Poll::Pending
            }
            Poll::Ready(results) => {
                Poll::Ready(results.and_then(|results| shard_of(&results)).map(|shard| Some((shard, element))))
            }
        }
    }
}

fn shard_of(results: &[Tensor]) -> Result<i64> {
    match results {
        [shard] if shard.dtype() == DType::I64 && shard.elements() == 1 => shard.to_scalar(),
        _ => Err(invalid!("`shard_func` must return a scalar int64.")),
    }
}

/// The metadata of a new run.
pub(super) fn new_metadata(graph_hash: String, run: u64, types: &[DType]) -> Metadata {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as i64);
    Metadata {
        graph_hash,
        run: run.to_string(),
        created: now,
        version: VERSION,
        types: types.to_vec(),
        elements: 0,
        is_complete: false,
    }
}

/// A number for a new run.
pub(super) fn new_run() -> u64 {
    // Each `RandomState` has its own keys, so its hash of nothing serves as a random number.
    RandomState::new().hash_one(())
}
