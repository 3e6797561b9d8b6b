//! Saved models: graphs with the names of what goes in and comes out.

use crate::{file, wire};
use bytes::Bytes;
use status::Result;
use std::path::Path;
use tensor::{DType, PartialShape};

/// A saved model: graphs for several uses.
#[derive(Clone, Debug)]
pub struct SavedModel {
    /// Version of the format.
    pub version: i64,
    /// The graphs.
    pub meta_graphs: Vec<MetaGraph>,
}

/// A graph with what belongs to it.
#[derive(Clone, Debug, Default)]
pub struct MetaGraph {
    /// What it is for: `serve`, `train`, …
    pub tags: Vec<String>,
    /// Version of the program that wrote it.
    pub producer: String,
    /// The graph, as a GraphDef message.
    pub graph: Bytes,
    /// How many nodes and functions the graph has.
    pub sizes: (usize, usize),
    /// Collections and how many values each has.
    pub collections: Vec<(String, usize)>,
    /// Ways to call it.
    pub signatures: Vec<SignatureInfo>,
}

/// A way to call a saved model.
#[derive(Clone, Debug)]
pub struct SignatureInfo {
    /// Its name.
    pub name: String,
    /// What kind of call it is.
    pub method: String,
    /// What goes in.
    pub inputs: Vec<TensorInfo>,
    /// What comes out.
    pub outputs: Vec<TensorInfo>,
}

/// A tensor of a signature.
#[derive(Clone, Debug)]
pub struct TensorInfo {
    /// Its name in the signature.
    pub name: String,
    /// Its name in the graph.
    pub tensor: String,
    /// Its element type.
    pub dtype: DType,
    /// What is known of its shape.
    pub shape: PartialShape,
}

impl SavedModel {
    /// The saved model in the file `saved_model.pb`, or in the folder that holds it.
    pub fn open(path: impl AsRef<Path>) -> Result<SavedModel> {
        let path = path.as_ref();
        let path = if path.is_dir() { path.join("saved_model.pb") } else { path.to_path_buf() };
        SavedModel::read(file::read(&path)?)
    }

    /// The saved model in these bytes.
    pub fn read(bytes: Bytes) -> Result<SavedModel> {
        wire::saved_model(bytes)
    }
}
