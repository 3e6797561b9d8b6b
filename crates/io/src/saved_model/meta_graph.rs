//! Meta graphs: a graph and all that belongs to it, kept as it was.

use super::wire;
use crate::fs::FileSystems;
use crate::text::text_to_binary;
use bytes::Bytes;
use status::{Result, not_found};
use std::collections::BTreeMap;
use tensor::{DType, PartialShape};

/// A graph with what belongs to it. What is not understood here is kept as bytes, and written as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetaGraph {
    /// What it is for: `serve`, `train`, …
    pub tags: Vec<String>,
    /// A version its writer gave it.
    pub version: String,
    /// Version of the program that wrote it.
    pub producer: String,
    /// The commit of that program.
    pub git_version: String,
    /// Whether attributes that have their default are left out of the graph.
    pub stripped_default_attrs: bool,
    /// Names that functions had for users.
    pub function_aliases: BTreeMap<String, String>,
    /// The ops of the graph, as an OpList message.
    pub op_list: Option<Bytes>,
    /// Anything, as an Any message.
    pub any_info: Option<Bytes>,
    /// The graph, as a GraphDef message.
    pub graph: Bytes,
    /// How checkpoints of it are written and read.
    pub saver: Option<Saver>,
    /// Values by the name of their collection.
    pub collections: BTreeMap<String, Collection>,
    /// Ways to call it, by name.
    pub signatures: BTreeMap<String, Signature>,
    /// Files it needs.
    pub assets: Vec<Asset>,
    /// The objects it came from, as a SavedObjectGraph message.
    pub object_graph: Option<Bytes>,
}

/// How checkpoints of a graph are written and read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saver {
    /// The tensor that is fed with the name of the checkpoint.
    pub filename_tensor: String,
    /// The tensor that is fetched to write one.
    pub save_tensor: String,
    /// The op that is run to read one.
    pub restore_op: String,
    /// How many are kept.
    pub max_to_keep: i32,
    /// Whether each device writes a file of its own.
    pub sharded: bool,
    /// How often one is kept for good.
    pub keep_checkpoint_every_n_hours: f32,
    /// The format: 1 or 2.
    pub version: i32,
}

/// Values of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Collection {
    /// Names of nodes or tensors.
    Nodes(Vec<String>),
    /// Messages, or any bytes.
    Bytes(Vec<Bytes>),
    /// Integers.
    Ints(Vec<i64>),
    /// Numbers.
    Floats(Vec<f32>),
    /// Messages that say what they are, as Any messages.
    Any(Vec<Bytes>),
    /// Nothing is said.
    #[default]
    Empty,
}

impl Collection {
    /// How many values.
    pub fn len(&self) -> usize {
        match self {
            Collection::Nodes(values) => values.len(),
            Collection::Bytes(values) | Collection::Any(values) => values.len(),
            Collection::Ints(values) => values.len(),
            Collection::Floats(values) => values.len(),
            Collection::Empty => 0,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A way to call a saved model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signature {
    /// What kind of call it is.
    pub method: String,
    /// What goes in, by name.
    pub inputs: BTreeMap<String, TensorInfo>,
    /// What comes out, by name.
    pub outputs: BTreeMap<String, TensorInfo>,
    /// What goes in if nothing is given, as TensorProto messages.
    pub defaults: BTreeMap<String, Bytes>,
}

/// A tensor of a signature.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorInfo {
    /// Its name in the graph.
    pub tensor: TensorName,
    /// Its element type.
    pub dtype: DType,
    /// What is known of its shape.
    pub shape: PartialShape,
}

/// What a tensor of a signature is in the graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TensorName {
    /// One tensor: `node:0`.
    Dense(String),
    /// A sparse one: its values, indices and shape.
    Sparse(String, String, String),
    /// Several that make one, as a CompositeTensor message.
    Composite(Bytes),
    /// Nothing is said.
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
    /// The tensor that is fed with its name.
    pub tensor: TensorInfo,
    /// Its name in the folder of assets.
    pub filename: String,
}

impl MetaGraph {
    /// The meta graph in a file, binary or text, as `Saver.export_meta_graph` writes it.
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

    /// The meta graph in these bytes.
    pub fn read(bytes: Bytes) -> Result<MetaGraph> {
        wire::decode_meta_graph(bytes)
    }

    /// The meta graph as bytes.
    pub fn to_bytes(&self) -> Result<Bytes> {
        wire::encode_meta_graph(self)
    }

    /// Writes a meta graph to a file.
    pub fn write(&self, systems: &FileSystems, name: &str) -> Result<()> {
        systems.write(name, &self.to_bytes()?)
    }

    /// The files it needs: its own list, or the collection in which TensorFlow 1 keeps them.
    pub fn files(&self) -> Result<Vec<Asset>> {
        match self.collections.get("saved_model_assets") {
            Some(Collection::Any(values)) if self.assets.is_empty() => wire::decode_any_assets(values),
            _ => Ok(self.assets.clone()),
        }
    }

    /// How many nodes and functions the graph has.
    pub fn sizes(&self) -> Result<(usize, usize)> {
        wire::graph_sizes(self.graph.clone())
    }
}

/// The GraphDef message in a file, binary or text.
pub fn read_graph(systems: &FileSystems, name: &str) -> Result<Bytes> {
    let bytes = systems.read(name)?;
    match name.ends_with(".pbtxt") {
        true => text_to_binary("tensorflow.GraphDef", &String::from_utf8_lossy(&bytes)),
        false => Ok(bytes),
    }
}
