//! Meta graphs: a graph with its collections, signatures and saver.

use super::wire;
use crate::fs::FileSystems;
use crate::text::text_to_binary;
use bytes::Bytes;
use status::{Result, not_found};
use std::collections::BTreeMap;
use tensor::{DType, PartialShape};

/// A graph with the data that belongs to it. Parts that this crate does not interpret are kept as bytes and written
/// unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetaGraph {
    /// Its tags: `serve`, `train`, …
    pub tags: Vec<String>,
    /// A version that the writer set.
    pub version: String,
    /// The version of the program that wrote it.
    pub producer: String,
    /// The git commit of that program.
    pub git_version: String,
    /// True if attributes with default values are omitted from the graph.
    pub stripped_default_attrs: bool,
    /// The names that users gave to functions.
    pub function_aliases: BTreeMap<String, String>,
    /// The ops of the graph, as an OpList message.
    pub op_list: Option<Bytes>,
    /// Any further data, as an Any message.
    pub any_info: Option<Bytes>,
    /// The graph, as a GraphDef message.
    pub graph: Bytes,
    /// The saver of the graph.
    pub saver: Option<Saver>,
    /// The collections by name.
    pub collections: BTreeMap<String, Collection>,
    /// The signatures by name.
    pub signatures: BTreeMap<String, Signature>,
    /// Files that the graph needs.
    pub assets: Vec<Asset>,
    /// The objects of the model, as a SavedObjectGraph message.
    pub object_graph: Option<Bytes>,
}

/// How checkpoints of a graph are saved and restored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saver {
    /// The tensor that is fed with the prefix of the checkpoint.
    pub filename_tensor: String,
    /// The tensor that is fetched to save.
    pub save_tensor: String,
    /// The op that restores.
    pub restore_op: String,
    /// The number of checkpoints that are kept.
    pub max_to_keep: i32,
    /// True if each device writes a file of its own.
    pub sharded: bool,
    /// The time in hours between two checkpoints that are kept permanently.
    pub keep_checkpoint_every_n_hours: f32,
    /// The format: 1 or 2.
    pub version: i32,
}

/// The values of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Collection {
    /// Names of nodes or tensors.
    Nodes(Vec<String>),
    /// Encoded messages, or other bytes.
    Bytes(Vec<Bytes>),
    /// Integers.
    Ints(Vec<i64>),
    /// Floating-point numbers.
    Floats(Vec<f32>),
    /// Any messages.
    Any(Vec<Bytes>),
    /// Not specified.
    #[default]
    Empty,
}

impl Collection {
    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            Collection::Nodes(values) => values.len(),
            Collection::Bytes(values) | Collection::Any(values) => values.len(),
            Collection::Ints(values) => values.len(),
            Collection::Floats(values) => values.len(),
            Collection::Empty => 0,
        }
    }

    /// True if the collection is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A signature of a saved model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signature {
    /// The name of its method.
    pub method: String,
    /// The inputs by name.
    pub inputs: BTreeMap<String, TensorInfo>,
    /// The outputs by name.
    pub outputs: BTreeMap<String, TensorInfo>,
    /// The default values of inputs, as TensorProto messages.
    pub defaults: BTreeMap<String, Bytes>,
}

/// A tensor of a signature.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorInfo {
    /// Its name in the graph.
    pub tensor: TensorName,
    /// Its element type.
    pub dtype: DType,
    /// Its shape, as far as it is known.
    pub shape: PartialShape,
}

/// The encoding of a signature's tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TensorName {
    /// A dense tensor: `node:0`.
    Dense(String),
    /// A sparse tensor: its values, indices and shape.
    Sparse(String, String, String),
    /// A composite tensor, as a CompositeTensor message.
    Composite(Bytes),
    /// Not specified.
    #[default]
    None,
}

impl std::fmt::Display for TensorName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TensorName::Dense(name) | TensorName::Sparse(name, _, _) => f.write_str(name),
            TensorName::Composite(_) | TensorName::None => Ok(()),
        }
    }
}

/// A file that a graph needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Asset {
    /// The tensor that is fed with the name of the file.
    pub tensor: TensorInfo,
    /// Its name in the folder of assets.
    pub filename: String,
}

impl MetaGraph {
    /// Reads the meta graph in a file, binary or text, such as `Saver.export_meta_graph` writes.
    pub fn open(systems: &FileSystems, name: &str) -> Result<MetaGraph> {
        if systems.is_dir(name)? || !systems.exists(name)? {
            return Err(not_found!("File {name} does not exist."));
        }
        let bytes = systems.read(name)?;
        MetaGraph::read(bytes.clone()).or_else(|binary| {
            let text = std::str::from_utf8(&bytes).map_err(|_| binary)?;
            MetaGraph::read(text_to_binary("tensorflow.MetaGraphDef", text)?)
        })
    }

    /// Decodes a MetaGraphDef message.
    pub fn read(bytes: Bytes) -> Result<MetaGraph> {
        wire::decode_meta_graph(bytes)
    }

    /// Encodes a MetaGraphDef message.
    pub fn to_bytes(&self) -> Result<Bytes> {
        wire::encode_meta_graph(self)
    }

    /// Writes the meta graph to a file.
    pub fn write(&self, systems: &FileSystems, name: &str) -> Result<()> {
        systems.write(name, &self.to_bytes()?)
    }

    /// The files that the graph needs: its own list, or the collection that TensorFlow 1 uses.
    pub fn files(&self) -> Result<Vec<Asset>> {
        match self.collections.get("saved_model_assets") {
            Some(Collection::Any(values)) if self.assets.is_empty() => wire::decode_any_assets(values),
            _ => Ok(self.assets.clone()),
        }
    }

    /// The number of nodes and of functions of the graph.
    pub fn sizes(&self) -> Result<(usize, usize)> {
        wire::graph_sizes(self.graph.clone())
    }
}

/// Reads the GraphDef message in a file, binary, or text if its name ends in `.pbtxt`.
pub fn read_graph(systems: &FileSystems, name: &str) -> Result<Bytes> {
    let bytes = systems.read(name)?;
    match name.ends_with(".pbtxt") {
        true => text_to_binary("tensorflow.GraphDef", &String::from_utf8_lossy(&bytes)),
        false => Ok(bytes),
    }
}
