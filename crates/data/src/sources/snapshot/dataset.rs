//! SnapshotDataset and SnapshotDatasetV2: the first run of a dataset saves it, later runs read what was saved.

use super::late_input::{LateInput, Saved};
use super::reader::compression;
use super::writer::SnapshotWriter;
use crate::attrs::{DATASET, dataset_kernel, fingerprint_of_input, input_dataset, string_scalar};
use crate::function::Function;
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Pipeline, Place, PollContext, Spec, StateReader,
    StateWriter, full_name,
};
use io::fs::path::join;
use io::snapshot::Metadata;
use io::{Compression, FileSystems};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use ops::checkpoint::systems;
use status::{Code, Error, Result, internal, invalid, not_found};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SnapshotDataset(input_dataset: variant, path: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; compression: string = \"\"; \
              reader_path_prefix: string = \"\"; writer_path_prefix: string = \"\"; \
              shard_size_bytes: int = 10737418240; pending_snapshot_expiry_seconds: int = 86400; \
              num_reader_threads: int = 1; reader_buffer_size: int = 1; num_writer_threads: int = 1; \
              writer_buffer_size: int = 1; shuffle_on_read: bool = false; seed: int = 0; seed2: int = 0; \
              mode: string = \"auto\"; snapshot_name: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: first_kernel,
        facts: DATASET,
    },
    Op {
        def: "SnapshotDatasetV2(input_dataset: variant, path: string, reader_func_other_args: [Treader_func_args], \
              shard_func_other_args: [Tshard_func_args]) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; compression: string = \"\"; reader_prefix: string = \"\"; \
              writer_prefix: string = \"\"; hash_valid: bool = false; hash: int = 0; reader_func: func; \
              shard_func: func; Treader_func_args: list(type) >= 0; Tshard_func_args: list(type) >= 0; \
              metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: second_kernel,
        facts: DATASET,
    },
];

/// One shard, which is written and read without functions.
fn first_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let systems = systems(setup)?;
    let (name, mode) = (setup.string("compression")?, setup.string("mode")?);
    let prefixes = [setup.string("reader_path_prefix")?, setup.string("writer_path_prefix")?];
    let expiry = match setup.int("pending_snapshot_expiry_seconds")? {
        -1 => 86400,
        seconds => seconds,
    };
    if !["", "GZIP", "SNAPPY"].contains(&name.as_str()) {
        return Err(invalid!("compression must be either '', 'GZIP' or 'SNAPPY'."));
    }
    if expiry < 1 {
        return Err(invalid!("pending_snapshot_expiry_seconds must be at least 1 second."));
    }
    if !["auto", "read", "write", "passthrough"].contains(&mode.as_str()) {
        return Err(invalid!("mode must be either 'auto', 'read', 'write', or 'passthrough'."));
    }
    dataset_kernel(setup, move |_, inputs| {
        Ok(Snapshot {
            hash: fingerprint_of_input(inputs, 0)?,
            input: input_dataset(inputs, 0)?,
            path: string_scalar(inputs, 1, "path")?,
            prefixes: prefixes.clone(),
            compression: compression(&name),
            systems: systems.clone(),
            functions: None,
            choice: Choice { mode: mode.clone(), expiry },
        })
    })
}

fn second_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let systems = systems(setup)?;
    let name = setup.string("compression")?;
    let compression = compression(if name == "AUTO" { "SNAPPY" } else { &name });
    let prefixes = [setup.string("reader_prefix")?, setup.string("writer_prefix")?];
    let hash = if setup.bool("hash_valid")? { Some(setup.int("hash")? as u64) } else { None };
    let (reader, shard) = (Function::of(setup, "reader_func")?, Function::of(setup, "shard_func")?);
    let reader_args = setup.types("Treader_func_args")?.len();
    dataset_kernel(setup, move |_, inputs| {
        let found = fingerprint_of_input(inputs, 0)?;
        let (reader_captured, shard_captured) =
            (inputs.tensors(2, reader_args)?, inputs.tensors_from(2 + reader_args)?);
        Ok(Snapshot {
            hash: hash.or(found.map(|hash| hash ^ graph::hash64(name.as_bytes()))),
            input: input_dataset(inputs, 0)?,
            path: string_scalar(inputs, 1, "path")?,
            prefixes: prefixes.clone(),
            compression,
            systems: systems.clone(),
            functions: Some([reader.capture(reader_captured), shard.capture(shard_captured)]),
            choice: Choice { mode: String::new(), expiry: 0 },
        })
    })
}

/// Whether a run reads, writes or does neither.
struct Choice {
    mode: String,
    /// A snapshot that is not complete is ignored after this many seconds.
    expiry: i64,
}

/// The numbers of modes in saved states.
const READ: i64 = 0;
const WRITE: i64 = 1;
const PASS: i64 = 2;

impl Choice {
    fn mode(&self, found: Option<&Metadata>) -> Result<i64> {
        match (self.mode.as_str(), found) {
            ("read", None) => Err(not_found!("Metadata file does not exist.")),
            ("read", Some(_)) => Ok(READ),
            ("write", _) => Ok(WRITE),
            ("passthrough", _) => Ok(PASS),
            (_, None) => Ok(WRITE),
            (_, Some(metadata)) if metadata.is_complete => Ok(READ),
            (_, Some(metadata)) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as i64);
                let oldest = now.saturating_sub(self.expiry.saturating_mul(1_000_000));
                Ok(if self.expiry > 0 && metadata.created >= oldest { PASS } else { WRITE })
            }
        }
    }
}

pub(super) struct Snapshot {
    pub(super) input: DatasetRef,
    path: String,
    /// What is put in front of the path to read and to write.
    prefixes: [String; 2],
    /// Identifies the dataset; none if it is not known to be equal to another one.
    hash: Option<u64>,
    pub(super) compression: Compression,
    pub(super) systems: Arc<FileSystems>,
    /// The functions that read the shards and that choose them.
    functions: Option<[Function; 2]>,
    choice: Choice,
}

impl Snapshot {
    fn folder(&self, prefix: usize, hash_folder: &str) -> String {
        match self.prefixes[prefix].as_str() {
            "" => hash_folder.to_string(),
            prefix => join(prefix, hash_folder.trim_start_matches('/')),
        }
    }

    pub(super) fn write_folder(&self, hash_folder: &str) -> String {
        self.folder(1, hash_folder)
    }

    fn metadata(&self, hash_folder: &str) -> Result<Option<Metadata>> {
        Metadata::read(&self.systems, &self.folder(0, hash_folder))
    }
}

impl Dataset for Snapshot {
    fn kind(&self) -> &'static str {
        "Snapshot"
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let hash = self.hash.unwrap_or_else(super::shards::new_run);
        let hash_folder = join(&self.path, &hash.to_string());
        self.systems.create_dirs(&self.write_folder(&hash_folder))?;
        Ok(Box::new(SnapshotIterator {
            dataset: self,
            hash_folder,
            index: 0,
            phase: None,
            pipeline: place.pipeline.clone(),
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}

struct SnapshotIterator {
    dataset: Arc<Snapshot>,
    /// The folder of the snapshot, without the prefixes.
    hash_folder: String,
    /// The number of elements that were requested.
    index: u64,
    phase: Option<Phase>,
    pipeline: Arc<Pipeline>,
    prefix: Arc<str>,
}

enum Phase {
    Read(LateInput),
    ReadShard(Input),
    Write(Box<SnapshotWriter>),
    Pass(Input),
}

impl Phase {
    fn mode(&self) -> i64 {
        match self {
            Phase::Read(_) | Phase::ReadShard(_) => READ,
            Phase::Write(_) => WRITE,
            Phase::Pass(_) => PASS,
        }
    }
}

impl SnapshotIterator {
    fn place(&self, suffix: &str) -> Place {
        Place { pipeline: self.pipeline.clone(), prefix: format!("{}{suffix}", self.prefix).into() }
    }

    fn begin(&self, mode: i64, metadata: Option<Metadata>) -> Result<Phase> {
        let dataset = &self.dataset;
        match mode {
            READ => self.begin_reading(metadata.ok_or_else(|| not_found!("Metadata file does not exist."))?),
            WRITE => {
                let function = dataset.functions.as_ref().map(|[_, shard]| shard.in_pipeline(&self.pipeline));
                let folder = dataset.write_folder(&self.hash_folder);
                let place = self.place("Writer");
                Ok(Phase::Write(Box::new(SnapshotWriter::new(dataset.clone(), folder, function.transpose()?, &place)?)))
            }
            PASS => Ok(Phase::Pass(self.place("Passthrough").input(&dataset.input)?)),
            other => Err(internal!("Invalid value for iterator_mode {other}")),
        }
    }

    fn begin_reading(&self, metadata: Metadata) -> Result<Phase> {
        let dataset = &self.dataset;
        let saved = Saved {
            systems: dataset.systems.clone(),
            folder: join(&dataset.folder(0, &self.hash_folder), &metadata.run),
            metadata,
            compression: dataset.compression,
            spec: dataset.spec().clone(),
        };
        let place = self.place("Reader");
        match &dataset.functions {
            Some([reader, _]) => {
                let function = reader.in_pipeline(&self.pipeline)?;
                Ok(Phase::Read(LateInput::new(function, saved.shards(self.index)?, &place)))
            }
            None => match saved.only_shard(self.index)? {
                Some(shard) => Ok(Phase::ReadShard(place.input(&shard)?)),
                None => Ok(Phase::ReadShard(Input::ended())),
            },
        }
    }

    fn phase(&mut self) -> Result<&mut Phase> {
        if self.phase.is_none() {
            let metadata = self.dataset.metadata(&self.hash_folder)?;
            let mode = self.dataset.choice.mode(metadata.as_ref())?;
            self.phase = Some(self.begin(mode, metadata)?);
        }
        self.phase.as_mut().ok_or_else(|| internal!("The snapshot was not opened"))
    }
}

impl Iterate for SnapshotIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        let phase = match self.phase() {
            Ok(phase) => phase,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let next = ready!(match phase {
            Phase::Read(input) => input.poll_next(ctx),
            Phase::ReadShard(input) | Phase::Pass(input) => input.poll_next(ctx),
            Phase::Write(writer) => writer.poll_next(ctx),
        });
        self.index += 1;
        Poll::Ready(next)
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        match &mut self.phase {
            Some(Phase::Pass(input)) => input.as_list(),
            Some(Phase::Write(writer)) => writer.input.as_list(),
            _ => Vec::new(),
        }
    }

    fn poll_settle(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<()>> {
        ready!(crate::iterate::settle_all(self.inputs(), ctx))?;
        Poll::Ready(match &mut self.phase {
            Some(Phase::Write(writer)) => writer.end_chunk(),
            _ => Ok(()),
        })
    }

    /// A reader continues from the number of elements that it has read.
    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let Some(phase) = &self.phase else { return Ok(()) };
        match phase {
            Phase::Pass(input) => input.save_present(writer)?,
            Phase::Write(snapshot) => snapshot.save(writer)?,
            Phase::Read(_) | Phase::ReadShard(_) => {}
        }
        let prefix = &*self.prefix;
        writer.int(prefix, &full_name(prefix, "iterator_mode"), phase.mode());
        writer.int(prefix, &full_name(prefix, "index"), self.index as i64);
        writer.string(prefix, &full_name(prefix, "graph_hash_directory"), self.hash_folder.clone());
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        if !reader.contains(&prefix, "iterator_mode") {
            return Ok(());
        }
        let lost = |message: String| Error::new(Code::DataLoss, message);
        let saved = String::from_utf8_lossy(&reader.string(&prefix, "graph_hash_directory")?).into_owned();
        if self.dataset.hash.is_none() {
            self.hash_folder = saved.clone(); // nothing else says which snapshot it was
        }
        if saved != self.hash_folder {
            return Err(lost(format!(
                "Dataset has changed while restoring from the checkpoint. Old hash directory: {saved}; new hash \
                 directory: {}",
                self.hash_folder
            )));
        }
        let metadata = self.dataset.metadata(&self.hash_folder)?;
        if metadata.is_none() {
            return Err(lost(format!("Snapshot metadata file in {} does not exist any more.", self.hash_folder)));
        }
        self.index = reader.count(&prefix, "index")? as u64;
        let mut phase = self.begin(reader.int(&prefix, "iterator_mode")?, metadata)?;
        match &mut phase {
            Phase::Pass(input) => input.restore_present(reader)?,
            Phase::Write(writer) => writer.restore(reader)?,
            Phase::Read(_) | Phase::ReadShard(_) => {}
        }
        self.phase = Some(phase);
        Ok(())
    }
}
