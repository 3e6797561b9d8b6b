//! Meta graphs: graphs in files, with their collections and their saver, so that another program can continue.

mod collections;

use crate::saver::Saver;
use graph::wire::{read_graph, write_graph};
use graph::{Graph, GraphDef, ImportOptions, NodeDef};
use io::fs::path::to_str;
use io::saved_model::{Collection, Saver as SaverDef};
use io::{FileSystems, MetaGraph};
use layers::collection::global_variables;
use status::Result;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What a meta graph contains besides the graph.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// The saver of its variables.
    pub saver: Option<SaverDef>,
    /// Whether devices are left out, so that the reader can choose.
    pub clear_devices: bool,
    /// Only these collections; all if none.
    pub collections: Option<Vec<String>>,
    /// The tags that say what it is for.
    pub tags: Vec<String>,
}

/// How a meta graph is added to a graph.
#[derive(Clone, Debug, Default)]
pub struct MetaImportOptions {
    /// Whether devices are left out.
    pub clear_devices: bool,
    /// The prefix of every name, without its slash; empty for none.
    pub prefix: String,
}

/// The meta graph of a graph.
pub fn export(graph: &Graph, options: &ExportOptions) -> Result<MetaGraph> {
    let mut def = graph.to_def()?;
    if options.clear_devices {
        clear_devices(&mut def);
    }
    let wanted = |name: &String| options.collections.as_ref().is_none_or(|names| names.contains(name));
    let mut collections = export_collections(graph);
    collections.retain(|name, _| wanted(name));
    Ok(MetaGraph {
        tags: options.tags.clone(),
        graph: write_graph(&def).into(),
        saver: options.saver.clone().filter(|saver| !saver.save_tensor.is_empty()),
        collections,
        ..MetaGraph::default()
    })
}

/// All collections of a graph, as in files.
pub fn export_collections(graph: &Graph) -> BTreeMap<String, Collection> {
    let names = graph.collections().into_iter();
    names.map(|name| (name.clone(), collections::export(graph, &name))).collect()
}

/// Writes a graph with its collections to a local file.
pub fn export_meta_graph(graph: &Graph, file: impl AsRef<Path>) -> Result<()> {
    export(graph, &ExportOptions::default())?.write(&FileSystems::local(), to_str(file.as_ref())?)
}

/// Writes a graph with its collections and a saver to a file, on the file systems of the saver.
pub fn export_meta_graph_with(graph: &Graph, file: impl AsRef<Path>, saver: &Saver) -> Result<()> {
    let options = ExportOptions { saver: Some(saver.def().clone()), ..ExportOptions::default() };
    export(graph, &options)?.write(saver.systems(), to_str(file.as_ref())?)
}

/// Adds the nodes and collections of a meta graph. Gives its saver; if it has variables and no saver, a new one of all
/// variables.
pub fn import(graph: &Graph, meta: &MetaGraph, options: &MetaImportOptions) -> Result<Option<Saver>> {
    let mut def = read_graph(meta.graph.clone())?;
    if options.clear_devices {
        clear_devices(&mut def);
    }
    // The prefix that names really got: one that was used before has a number.
    let nodes = graph.import(&def, &ImportOptions { prefix: options.prefix.clone(), ..ImportOptions::default() })?;
    let prefix = match (def.nodes.first(), nodes.first()) {
        (Some(before), Some(after)) => after.name().strip_suffix(&before.name).unwrap_or_default().to_string(),
        _ => String::new(),
    };
    for (name, values) in &meta.collections {
        collections::import(graph, name, values, &prefix)?;
    }
    match &meta.saver {
        Some(saver) => Ok(Some(Saver::from_def(graph, collections::prefixed_saver(saver, &prefix)))),
        None if global_variables(graph).is_empty() => Ok(None),
        None => Ok(Some(Saver::new(graph)?)),
    }
}

/// Adds the graph of a meta graph file, with its collections; gives its saver.
pub fn import_meta_graph(graph: &Graph, file: impl AsRef<Path>) -> Result<Option<Saver>> {
    import_meta_graph_on(&FileSystems::local(), graph, file)
}

/// As [`import_meta_graph`], on these file systems, which are also those of the saver.
pub fn import_meta_graph_on(systems: &FileSystems, graph: &Graph, file: impl AsRef<Path>) -> Result<Option<Saver>> {
    let saver = import(graph, &MetaGraph::open(systems, to_str(file.as_ref())?)?, &MetaImportOptions::default())?;
    Ok(saver.map(|saver| saver.with_file_systems(systems)))
}

fn clear_devices(def: &mut GraphDef) {
    let cleared = |node: &Arc<NodeDef>| Arc::new(NodeDef { device: String::new(), ..(**node).clone() });
    def.nodes = def.nodes.iter().map(cleared).collect();
}
