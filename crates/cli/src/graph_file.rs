//! Graphs in files: GraphDef and MetaGraphDef messages, binary or as text.

use crate::files;
use anyhow::{Context, Result};
use flowgrid::GraphDef;
use io::fs::path::basename;
use io::{FileSystems, MetaGraph, saved_model};

/// What a file with a graph holds.
pub enum GraphFile {
    /// A graph alone.
    Graph(GraphDef),
    /// A graph with its signatures and collections.
    Meta(MetaGraph),
}

impl GraphFile {
    /// Reads a file. Names ending in `.meta` hold a MetaGraphDef, names ending in `.pbtxt` hold text, of either kind;
    /// every other file is a binary GraphDef.
    pub fn open(systems: &FileSystems, path: &str) -> Result<GraphFile> {
        let name = basename(path);
        if name.ends_with(".meta") || name.ends_with(".meta.pbtxt") {
            let meta = MetaGraph::open(systems, path);
            return Ok(GraphFile::Meta(meta.with_context(|| format!("cannot read {path} as a MetaGraphDef"))?));
        }
        let graph = saved_model::read_graph(systems, path).and_then(flowgrid::wire::read_graph);
        graph.map(GraphFile::Graph).or_else(|error| match MetaGraph::open(systems, path) {
            Ok(meta) if name.ends_with(".pbtxt") => Ok(GraphFile::Meta(meta)),
            _ => Err(error).with_context(|| format!("cannot read {path} as a GraphDef")),
        })
    }
}

/// The graph in a file, of a MetaGraphDef too.
pub fn read(path: &str) -> Result<GraphDef> {
    match GraphFile::open(&files::systems(), path)? {
        GraphFile::Graph(graph) => Ok(graph),
        GraphFile::Meta(meta) => {
            flowgrid::wire::read_graph(meta.graph).with_context(|| format!("cannot read the graph in {path}"))
        }
    }
}
