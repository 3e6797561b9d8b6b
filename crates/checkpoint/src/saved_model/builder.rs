//! Writes saved models.

use super::{INIT_OP_SIGNATURE, MAIN_OP, Signature, tensor_info};
use crate::meta_graph::{self, ExportOptions};
use crate::saver::{SaveOptions, Saver};
use graph::{Graph, Node, Output};
use io::fs::path::to_str;
use io::saved_model::{Asset, Collection, TensorInfo, TensorName, add_asset, variables_prefix};
use io::{FileSystems, MetaGraph, SavedModel};
use session::Session;
use status::{Result, already_exists, failed_precondition};
use std::collections::BTreeMap;
use std::path::Path;
use tensor::{DType, PartialShape};

/// Writes a saved model: the first graph with the values of its variables, then graphs for other uses with the same
/// variables.
pub struct SavedModelBuilder {
    systems: FileSystems,
    folder: String,
    meta_graphs: Vec<MetaGraph>,
}

/// What a saved model contains besides a graph.
#[derive(Default)]
pub struct MetaGraphOptions<'a> {
    /// The signatures by name.
    pub signatures: BTreeMap<String, Signature>,
    /// The files it needs: the tensor that is fed with the name of the file, and the file.
    pub assets: Vec<(&'a Output, &'a str)>,
    /// The node to run after the variables were restored.
    pub main_op: Option<&'a Node>,
    /// Whether devices are left out, so that the reader can choose.
    pub clear_devices: bool,
    /// The saver of the variables; by default a new one of all variables.
    pub saver: Option<&'a Saver>,
}

impl SavedModelBuilder {
    /// A saved model in this folder, which must be new or empty.
    pub fn new(folder: impl AsRef<Path>) -> Result<SavedModelBuilder> {
        SavedModelBuilder::on(&FileSystems::local(), folder)
    }

    /// As [`SavedModelBuilder::new`], on these file systems.
    pub fn on(systems: &FileSystems, folder: impl AsRef<Path>) -> Result<SavedModelBuilder> {
        let folder = to_str(folder.as_ref())?;
        if systems.is_dir(folder)? && !systems.list(folder)?.is_empty() {
            return Err(already_exists!(
                "Export directory {folder} already exists, and isn't empty. Please choose a different export directory, \
                 or delete all the contents of the specified directory."
            ));
        }
        systems.create_dirs(folder)?;
        Ok(SavedModelBuilder { systems: systems.clone(), folder: folder.to_string(), meta_graphs: Vec::new() })
    }

    /// Adds the first graph, and the values of its variables.
    pub fn add_meta_graph_and_variables(
        &mut self,
        session: &Session,
        tags: &[&str],
        options: MetaGraphOptions<'_>,
    ) -> Result<()> {
        if !self.meta_graphs.is_empty() {
            return Err(failed_precondition!(
                "Graph state including variables and assets has already been saved. Please invoke `add_meta_graph()` \
                 instead."
            ));
        }
        let graph = session.graph().clone();
        let prefix = variables_prefix(&self.folder);
        self.systems.create_dirs(io::fs::path::dirname(&prefix))?;
        self.add(&graph, tags, options, |saver| {
            let nothing_else = SaveOptions { write_state: false, write_meta_graph: false, ..SaveOptions::default() };
            match saver.is_empty() {
                true => Ok(()),
                false => saver.save_with(session, &prefix, None, &nothing_else).map(drop),
            }
        })
    }

    /// Adds a graph with the same variables for another use.
    pub fn add_meta_graph(&mut self, graph: &Graph, tags: &[&str], options: MetaGraphOptions<'_>) -> Result<()> {
        if self.meta_graphs.is_empty() {
            return Err(failed_precondition!(
                "Graph state including variables and assets has not been saved yet. Please invoke \
                 `add_meta_graph_and_variables()` first."
            ));
        }
        self.add(graph, tags, options, |_| Ok(()))
    }

    fn add(
        &mut self,
        graph: &Graph,
        tags: &[&str],
        options: MetaGraphOptions<'_>,
        save: impl FnOnce(&Saver) -> Result<()>,
    ) -> Result<()> {
        let made = match options.saver {
            Some(_) => None,
            None => Some(Saver::builder(graph).sharded(true).allow_empty(true).build()?),
        };
        if let Some(saver) = options.saver.or(made.as_ref()) {
            save(saver)?;
            let export = ExportOptions {
                saver: Some(saver.def().clone()),
                clear_devices: options.clear_devices,
                collections: None,
                tags: tags.iter().map(|tag| tag.to_string()).collect(),
            };
            let mut meta = meta_graph::export(graph, &export)?;
            self.complete(&mut meta, options)?;
            self.meta_graphs.push(meta);
        }
        Ok(())
    }

    fn complete(&self, meta: &mut MetaGraph, options: MetaGraphOptions<'_>) -> Result<()> {
        meta.signatures = options.signatures;
        for (tensor, file) in options.assets {
            let filename = add_asset(&self.systems, &self.folder, file)?;
            meta.assets.push(Asset { tensor: tensor_info(tensor), filename });
        }
        if let Some(op) = options.main_op {
            let name = op.name();
            meta.collections.insert(MAIN_OP.to_string(), Collection::Nodes(vec![name.clone()]));
            let info =
                TensorInfo { tensor: TensorName::Dense(name), dtype: DType::INVALID, shape: PartialShape::unknown() };
            let outputs = BTreeMap::from([(INIT_OP_SIGNATURE.to_string(), info)]);
            meta.signatures.insert(INIT_OP_SIGNATURE.to_string(), Signature { outputs, ..Signature::default() });
        }
        Ok(())
    }

    /// Writes the model; gives the folder.
    pub fn save(self) -> Result<String> {
        SavedModel::new(self.meta_graphs).write(&self.systems, &self.folder)?;
        Ok(self.folder)
    }
}
