//! A cache in files: checkpoints in TensorFlow's format, one for each state that was saved, which become one at the end.

use crate::dataset::only;
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter,
};
use io::bundle::{MergeOptions, data_path, index_path, merge_bundles};
use io::{Bundle, BundleWriter, FileSystems};
use status::{Code, Result, already_exists, internal, invalid, not_found};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{SystemTime, UNIX_EPOCH};

/// The most elements of a cache, as in TensorFlow.
const MOST_ELEMENTS: usize = 10_000_000;

pub(super) struct FileCache {
    input: DatasetRef,
    name: String,
    systems: Arc<FileSystems>,
}

impl FileCache {
    /// A dataset that keeps the elements of its input in files whose names begin with `name`.
    pub(super) fn new(input: DatasetRef, name: String, systems: Arc<FileSystems>) -> FileCache {
        FileCache { input, name, systems }
    }

    fn is_complete(&self) -> Result<bool> {
        self.systems.exists(&index_path(&self.name))
    }

    /// The name of a component in the checkpoint; names are padded so that their order is that of the elements.
    fn key(&self, index: usize, component: usize) -> String {
        let width = (self.input.spec().types.len().max(1) - 1).to_string().len();
        format!("{index:7}_{component:width$}")
    }

    fn shard(&self, number: usize) -> String {
        format!("{}_{number}", self.name)
    }

    fn lock(&self, number: usize) -> String {
        format!("{}_{number}.lockfile", self.name)
    }
}

impl Dataset for FileCache {
    fn kind(&self) -> &'static str {
        "FileCache"
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_rewritten(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        let (name, systems) = (self.name.clone(), self.systems.clone());
        only(inputs).map(|input| -> DatasetRef { Arc::new(FileCache { input, name, systems }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let mut iterator = FileIterator {
            phase: Phase::Failed,
            dataset: self,
            pipeline: place.pipeline.clone(),
            prefix: place.prefix.clone(),
            impl_prefix: format!("{}Impl", place.prefix).into(),
        };
        iterator.begin(iterator.dataset.is_complete()?)?;
        Ok(Box::new(iterator))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}

struct FileIterator {
    dataset: Arc<FileCache>,
    phase: Phase,
    pipeline: Arc<Pipeline>,
    prefix: Arc<str>,
    impl_prefix: Arc<str>,
}

/// What an iterator does with the cache from its beginning to its end.
enum Phase {
    Read(Reader),
    Write(Writer),
    Failed,
}

/// How the phases are saved.
const READ: i64 = 0;
const WRITE: i64 = 1;

impl FileIterator {
    fn begin(&mut self, reads: bool) -> Result<()> {
        self.phase = Phase::Failed; // drops what wrote to the files before
        let dataset = self.dataset.clone();
        self.phase = match reads {
            true => Phase::Read(Reader { bundle: None, index: 0, dataset }),
            false => {
                let place = Place { pipeline: self.pipeline.clone(), prefix: self.prefix.clone() };
                let input = place.input_named(&dataset.input, &self.impl_prefix)?;
                Phase::Write(Writer { dataset, input, index: 0, shard: 0, bundle: None, is_complete: false })
            }
        };
        Ok(())
    }
}

impl Iterate for FileIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        match &mut self.phase {
            Phase::Read(reader) => Poll::Ready(reader.next()),
            Phase::Write(writer) => writer.poll_next(ctx),
            Phase::Failed => Poll::Ready(Err(internal!("The cache {} could not be opened", self.dataset.name))),
        }
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        match &mut self.phase {
            Phase::Write(writer) => writer.input.as_list(),
            _ => Vec::new(),
        }
    }

    /// What was written so far becomes a checkpoint of its own, from which a restored iterator continues.
    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        ready!(crate::iterate::settle_all(self.inputs(), ctx))?;
        Poll::Ready(match &mut self.phase {
            Phase::Write(writer) => writer.begin_shard(),
            _ => Ok(()),
        })
    }

    fn save(&self, state: &mut StateWriter) -> Result<()> {
        let prefix = &*self.impl_prefix;
        state.int(&self.prefix, "Mode", if matches!(self.phase, Phase::Write(_)) { WRITE } else { READ });
        match &self.phase {
            Phase::Read(reader) => state.int(prefix, "cur_index", reader.index as i64),
            Phase::Write(writer) => {
                state.int(prefix, "cur_index", writer.index as i64);
                if writer.is_complete {
                    state.string(prefix, "iteration_completed", "");
                    return Ok(());
                }
                state.int(prefix, "shard_id", writer.shard as i64);
                writer.input.save_present(state)?;
            }
            Phase::Failed => {}
        }
        Ok(())
    }

    fn restore(&mut self, state: &Arc<StateReader>) -> Result<()> {
        let wrote = state.int(&self.prefix, "Mode")? == WRITE;
        // The cache may have been completed after the state was saved: then the iterator reads it.
        self.begin(!wrote || self.dataset.is_complete()?)?;
        let prefix = &*self.impl_prefix;
        let index = state.count(prefix, "cur_index")?;
        match &mut self.phase {
            Phase::Read(reader) => reader.index = index,
            Phase::Write(writer) => {
                writer.index = index;
                writer.is_complete = state.contains(prefix, "iteration_completed");
                if !writer.is_complete {
                    writer.input.restore_present(state)?;
                    writer.shard = state.count(prefix, "shard_id")?;
                }
            }
            Phase::Failed => {}
        }
        Ok(())
    }
}

/// Reads a complete cache.
struct Reader {
    dataset: Arc<FileCache>,
    bundle: Option<Bundle>,
    index: usize,
}

impl Reader {
    fn next(&mut self) -> Result<Option<Element>> {
        let bundle = match &mut self.bundle {
            Some(bundle) => bundle,
            none => none.insert(Bundle::open(&self.dataset.systems, &self.dataset.name)?),
        };
        let keys = (0..self.dataset.spec().types.len()).map(|component| self.dataset.key(self.index, component));
        let keys: Vec<String> = keys.collect();
        if keys.iter().any(|key| !bundle.entries().contains_key(key)) {
            return Ok(None);
        }
        let element = keys.iter().map(|key| bundle.read(key)).collect::<Result<Element>>()?;
        self.index += 1;
        Ok(Some(element))
    }
}

/// Passes on the elements of the input and writes them.
struct Writer {
    dataset: Arc<FileCache>,
    input: Input,
    /// The number of elements that were written.
    index: usize,
    /// The number of the current checkpoint. The ones before contain what was written before states were saved.
    shard: usize,
    /// The current checkpoint, once it is locked.
    bundle: Option<BundleWriter>,
    is_complete: bool,
}

impl Writer {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.is_complete {
            return Poll::Ready(Ok(None));
        }
        if let Err(error) = self.lock() {
            return Poll::Ready(Err(error));
        }
        match ready!(self.input.poll_next(ctx)) {
            Ok(Some(element)) => Poll::Ready(self.write(element).map(Some)),
            Ok(None) => Poll::Ready(self.finish().map(|()| None)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Locks the current checkpoint against other iterators, and begins it.
    fn lock(&mut self) -> Result<()> {
        if self.bundle.is_some() {
            return Ok(());
        }
        let (systems, name) = (&self.dataset.systems, self.dataset.shard(self.shard));
        if systems.exists(&index_path(&name))? {
            let (index, data) = (index_path(&name), data_path(&name, 0, 1));
            return Err(already_exists!(
                "Existing cache files found: \n{index}\n{data}\nTo continue delete the above files."
            ));
        }
        let lock = self.dataset.lock(self.shard);
        if systems.exists(&lock)? {
            let contents = systems.read(&lock).unwrap_or_default();
            return Err(already_exists!(
                "There appears to be a concurrent caching iterator running - cache lockfile already exists ('{lock}'). \
                 If you are sure no other running TF computations are using this cache prefix, delete the lockfile and \
                 re-initialize the iterator. Lockfile contents: {}",
                String::from_utf8_lossy(&contents[..contents.len().min(150)])
            ));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let mut file = systems.create(&lock)?;
        file.append(format!("Created at: {now}").as_bytes())?;
        file.close()?;
        self.bundle = Some(BundleWriter::create(systems, &name)?);
        Ok(())
    }

    fn write(&mut self, element: Element) -> Result<Element> {
        let expected = self.dataset.spec().types.len();
        if self.index >= MOST_ELEMENTS {
            let _ = self.finish(); // what was written remains readable, as in TensorFlow
            return Err(invalid!(
                "Upstream iterator is producing more than {MOST_ELEMENTS} items, which is more than the cache limit."
            ));
        }
        if element.len() != expected {
            return Err(internal!(
                "Upstream iterator returned invalid number of tensors. Expected {expected} got: {}",
                element.len()
            ));
        }
        let Some(bundle) = &mut self.bundle else { return Err(internal!("The cache is not locked")) };
        for (component, tensor) in element.iter().enumerate() {
            bundle.add(&self.dataset.key(self.index, component), tensor)?;
        }
        self.index += 1;
        Ok(element)
    }

    /// Completes the current checkpoint; the next element begins another one.
    fn begin_shard(&mut self) -> Result<()> {
        if let Some(bundle) = self.bundle.take() {
            bundle.finish()?;
            self.shard += 1;
        }
        Ok(())
    }

    /// The name of a checkpoint that was written. The number of them may come from a saved state, which may be wrong.
    fn written_shard(&self, number: usize) -> Result<String> {
        let name = self.dataset.shard(number);
        match self.dataset.systems.exists(&index_path(&name))? {
            true => Ok(name),
            false => Err(not_found!(
                "The cache {} consists of {} files, of which {} does not exist; delete its files and initialize the \
                 iterator again",
                self.dataset.name,
                self.shard.saturating_add(1),
                index_path(&name)
            )),
        }
    }

    /// Makes one checkpoint of all.
    fn finish(&mut self) -> Result<()> {
        self.is_complete = true;
        self.bundle.take().map_or(Ok(()), BundleWriter::finish)?;
        let (dataset, systems) = (&self.dataset, &self.dataset.systems);
        let shards = (0..=self.shard).map(|number| self.written_shard(number)).collect::<Result<Vec<_>>>()?;
        let shards: Vec<&str> = shards.iter().map(String::as_str).collect();
        merge_bundles(systems, &shards, &dataset.name, MergeOptions::default())?;
        for number in 0..=self.shard {
            match systems.delete(&dataset.lock(number)) {
                Err(error) if error.code != Code::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Writer {
    /// A part of a dataset must not be taken for the whole: the checkpoint that is being written is discarded.
    fn drop(&mut self) {
        if self.bundle.take().is_some() {
            let _ = self.dataset.systems.delete(&self.dataset.lock(self.shard));
        }
    }
}
