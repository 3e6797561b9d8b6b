//! SnapshotChunkDataset and ListSnapshotChunksDataset: datasets that TensorFlow's data service saved.

use super::super::files::{FileName, Files, Format, Records, one_string, string_element};
use super::reader::compression;
use crate::attrs::{DATASET, dataset_kernel, spec, string_scalar};
use crate::{
    Cardinality, Dataset, Element, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter, full_name,
};
use io::fs::path::join;
use io::snapshot::ElementReader;
use io::{Compression, FileSystems};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use ops::checkpoint::systems;
use status::{Code, Result, invalid, unimplemented_op};
use std::sync::Arc;
use std::task::Poll;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SnapshotChunkDataset(chunk_file: string) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; compression: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: chunk_kernel,
        facts: DATASET,
    },
    Op {
        def: "ListSnapshotChunksDataset(snapshot_path: string) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: list_kernel,
        facts: DATASET,
    },
];

fn chunk_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (systems, spec) = (systems(setup)?, spec(setup)?);
    let compression = compression(&setup.string("compression")?);
    dataset_kernel(setup, move |_, inputs| {
        let file = string_scalar(inputs, 0, "chunk_file")?;
        let chunk = Chunk { compression, components: spec.types.len() };
        Ok(Files::with_spec("SnapshotChunkDataset", vec![file], chunk, systems.clone(), spec.clone()))
    })
}

struct Chunk {
    compression: Compression,
    components: usize,
}

/// A file of elements, and how many were read.
struct ChunkReader(ElementReader, u64);

impl Format for Chunk {
    type Reader = ChunkReader;

    fn open(&self, systems: &FileSystems, file: &FileName<'_>, position: Option<u64>) -> Result<ChunkReader> {
        let mut reader = ElementReader::open(systems, file.name, self.compression, self.components)?;
        let skip = position.unwrap_or(0);
        for _ in 0..skip {
            if reader.read()?.is_none() {
                break;
            }
        }
        Ok(ChunkReader(reader, skip))
    }

    fn save(&self, writer: &mut StateWriter, prefix: &str, index: usize, position: Option<u64>) {
        // At the end of the file, the number of elements to skip is larger than any file.
        let position = position.unwrap_or(if index > 0 { i64::MAX as u64 } else { 0 });
        writer.int(prefix, &full_name(prefix, "start_index"), position as i64);
    }

    fn restore(&self, reader: &StateReader, prefix: &str) -> Result<(usize, Option<u64>)> {
        Ok((0, Some(reader.count(prefix, "start_index")? as u64)))
    }
}

impl Records for ChunkReader {
    fn next(&mut self) -> Result<Option<Element>> {
        let element = self.0.read()?.map(Element::from);
        self.1 += u64::from(element.is_some());
        Ok(element)
    }

    fn position(&self) -> u64 {
        self.1
    }
}

fn list_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (systems, spec) = (systems(setup)?, spec(setup)?);
    if spec != one_string() {
        return Err(invalid!(
            "ListSnapshotChunksDataset should return one string: its `output_types` is [string], its `output_shapes` []"
        ));
    }
    dataset_kernel(setup, move |_, inputs| {
        let folder = string_scalar(inputs, 0, "snapshot_path")?;
        Ok(ListChunks { folder, systems: systems.clone(), spec: spec.clone() })
    })
}

struct ListChunks {
    folder: String,
    systems: Arc<FileSystems>,
    spec: Spec,
}

impl ListChunks {
    /// The names of the files, the first ones of all streams first.
    fn names(&self) -> Result<Vec<String>> {
        if self.systems.exists(&join(&self.folder, "ERROR"))? {
            return Err(invalid!("The data service could not save the snapshot {}", self.folder));
        }
        if !self.systems.exists(&join(&self.folder, "DONE"))? {
            return Err(unimplemented_op!(
                "The snapshot {} is not complete: Flowgrid reads it when the data service has saved all of it",
                self.folder
            ));
        }
        let mut names = match self.systems.list(&join(&self.folder, "chunks")) {
            Err(error) if error.code == Code::NotFound => Vec::new(),
            names => names?,
        };
        names.sort_by_cached_key(|name| (order(name), name.clone()));
        Ok(names)
    }
}

/// The number of a file in its stream, and of the stream: `chunk_<stream>_<number>_<elements>`.
fn order(name: &str) -> Option<(u64, u64)> {
    let mut parts = name.strip_prefix("chunk_")?.split('_');
    let (stream, number) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((number, stream))
}

impl Dataset for ListChunks {
    fn kind(&self) -> &'static str {
        "ListSnapshotChunks"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(ListIterator { dataset: self, names: None, index: 0, prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct ListIterator {
    dataset: Arc<ListChunks>,
    names: Option<Vec<String>>,
    index: usize,
    prefix: Arc<str>,
}

impl ListIterator {
    fn next(&mut self) -> Result<Option<Element>> {
        let names = match &self.names {
            Some(names) => names,
            None => self.names.insert(self.dataset.names()?),
        };
        let Some(name) = names.get(self.index) else { return Ok(None) };
        self.index += 1;
        let path = join(&join(&self.dataset.folder, "chunks"), name);
        Ok(Some(string_element(path.into())))
    }
}

impl Iterate for ListIterator {
    fn poll_next(&mut self, _: &mut PollContext<'_>) -> Next {
        Poll::Ready(self.next())
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let read = self.names.as_ref().map_or(String::new(), |names| names[..self.index].join(","));
        writer.string(&self.prefix, &full_name(&self.prefix, "chunks_read"), read);
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let read = reader.string(&self.prefix, "chunks_read")?;
        self.index = if read.is_empty() { 0 } else { read.iter().filter(|&&byte| byte == b',').count() + 1 };
        Ok(())
    }
}
