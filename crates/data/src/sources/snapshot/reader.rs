//! SnapshotDatasetReader and SnapshotNestedDatasetReader: the elements of one shard, and the datasets of all shards.

use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec, string_scalar};
use crate::dataset::dataset_tensor_from;
use crate::graphs::{Maker, Origin, shapes_attr, types_attr};
use crate::{
    Cardinality, Dataset, Element, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter, full_name,
};
use graph::NodeDef;
use io::snapshot::{ElementReader, VERSION, chunk_path};
use io::{Compression, FileSystems};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use ops::checkpoint::systems;
use smallvec::smallvec;
use status::{Result, invalid};
use std::sync::Arc;
use std::task::Poll;
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SnapshotDatasetReader(shard_dir: string, start_index: int64) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; compression: string = \"\"; version: int",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: reader_kernel,
        facts: DATASET,
    },
    Op {
        def: "SnapshotNestedDatasetReader(inputs: N * variant) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; N: int >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: nested_kernel,
        facts: DATASET,
    },
];

fn reader_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (systems, spec, version) = (systems(setup)?, spec(setup)?, setup.int("version")?);
    let compression = compression(&setup.string("compression")?);
    dataset_kernel(setup, move |_, inputs| {
        let folder = string_scalar(inputs, 0, "shard_dir")?;
        let skip: i64 = scalar(inputs, 1, "start_index")?;
        let skip = u64::try_from(skip).map_err(|_| invalid!("start_index must be >= 0, got {skip}"))?;
        Ok(ShardReader { folder, skip, version, compression, systems: systems.clone(), spec: spec.clone() })
    })
}

fn nested_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let count = setup.input_types().len();
    dataset_kernel(setup, move |_, inputs| {
        (0..count).try_for_each(|index| input_dataset(inputs, index).map(drop))?;
        Ok(Nested::new(inputs.tensors(0, count)?))
    })
}

/// A compression by name; unknown names mean none, as in TensorFlow.
pub(super) fn compression(name: &str) -> Compression {
    Compression::from_name(name).unwrap_or_default()
}

fn name_of(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "",
        Compression::Zlib => "ZLIB",
        Compression::Gzip => "GZIP",
        Compression::Snappy => "SNAPPY",
    }
}

/// The elements of a shard: its files are read one after the other.
pub(super) struct ShardReader {
    pub(super) folder: String,
    /// The number of elements to skip in the first file.
    pub(super) skip: u64,
    pub(super) version: i64,
    pub(super) compression: Compression,
    pub(super) systems: Arc<FileSystems>,
    pub(super) spec: Spec,
}

impl ShardReader {
    /// The dataset as the value of a node, so that it can be a part of the saved state of an iterator.
    pub(super) fn tensor(self) -> Result<Tensor> {
        let attrs = [
            ("output_types", types_attr(self.spec.types.clone())),
            ("output_shapes", shapes_attr(self.spec.shapes.clone())),
            ("compression", name_of(self.compression).into()),
            ("version", self.version.into()),
        ];
        let attrs = attrs.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        let node = NodeDef { op: "SnapshotDatasetReader".to_string(), attrs, ..NodeDef::default() };
        let inputs = vec![Tensor::string(self.folder.clone()), Tensor::scalar(self.skip as i64)];
        dataset_tensor_from(Arc::new(self), Some(Origin { maker: Maker::described(node), inputs }), 0)
    }

    /// Opens a file behind its first elements; none if there is no such file.
    fn open(&self, chunk: u64, skip: u64) -> Result<Option<ElementReader>> {
        if self.version != VERSION {
            return Err(invalid!("Snapshot reader version: {} is not supported.", self.version));
        }
        let path = chunk_path(&self.folder, chunk);
        if chunk > 0 && !self.systems.exists(&path)? {
            return Ok(None);
        }
        let mut reader = ElementReader::open(&self.systems, &path, self.compression, self.spec.types.len())?;
        for _ in 0..skip {
            if reader.read()?.is_none() {
                break;
            }
        }
        Ok(Some(reader))
    }
}

impl Dataset for ShardReader {
    fn kind(&self) -> &'static str {
        "SnapshotDatasetReader"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let skip = self.skip;
        Ok(Box::new(ShardIterator {
            dataset: self,
            chunk: 0,
            position: skip,
            reader: None,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

struct ShardIterator {
    dataset: Arc<ShardReader>,
    /// The number of the current file, and of the next element in it.
    chunk: u64,
    position: u64,
    reader: Option<ElementReader>,
    prefix: Arc<str>,
}

impl ShardIterator {
    fn next(&mut self) -> Result<Option<Element>> {
        loop {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                none => match self.dataset.open(self.chunk, self.position)? {
                    Some(reader) => none.insert(reader),
                    None => return Ok(None),
                },
            };
            if let Some(element) = reader.read()? {
                self.position += 1;
                return Ok(Some(element.into()));
            }
            self.reader = None;
            self.chunk += 1;
            self.position = 0;
        }
    }
}

impl Iterate for ShardIterator {
    fn poll_next(&mut self, _: &mut PollContext<'_>) -> Next {
        Poll::Ready(self.next())
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let mut int = |key: &str, value: u64| writer.int(&self.prefix, &full_name(&self.prefix, key), value as i64);
        int("current_checkpoint_id", self.chunk);
        int("start_index", self.position);
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.chunk = reader.count(&self.prefix, "current_checkpoint_id")? as u64;
        self.position = reader.count(&self.prefix, "start_index")? as u64;
        Ok(())
    }
}

/// A dataset of datasets.
pub(super) struct Nested {
    datasets: Vec<Tensor>,
    spec: Spec,
}

impl Nested {
    pub(super) fn new(datasets: Vec<Tensor>) -> Nested {
        Nested { datasets, spec: Spec { types: vec![DType::VARIANT], shapes: vec![PartialShape::unknown()] } }
    }
}

impl Dataset for Nested {
    fn kind(&self) -> &'static str {
        "SnapshotNestedDatasetReader"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(NestedIterator { dataset: self, index: 0, prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Finite(self.datasets.len() as u64)
    }
}

struct NestedIterator {
    dataset: Arc<Nested>,
    index: usize,
    prefix: Arc<str>,
}

impl Iterate for NestedIterator {
    fn poll_next(&mut self, _: &mut PollContext<'_>) -> Next {
        let Some(dataset) = self.dataset.datasets.get(self.index) else { return Poll::Ready(Ok(None)) };
        self.index += 1;
        Poll::Ready(Ok(Some(smallvec![dataset.clone()])))
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        writer.int(&self.prefix, &full_name(&self.prefix, "index"), self.index as i64);
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.index = reader.count(&self.prefix, "index")?;
        Ok(())
    }
}
