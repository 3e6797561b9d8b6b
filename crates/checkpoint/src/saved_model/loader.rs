//! Reads saved models.

use super::{DEFAULT_SIGNATURE, INIT_OP_SIGNATURE, MAIN_OP, Signature, TensorInfo};
use crate::meta_graph::{self, MetaImportOptions};
use crate::saver::Saver;
use graph::Graph;
use io::fs::path::to_str;
use io::saved_model::{Collection, TensorName, assets_folder, variables_prefix};
use io::state::checkpoint_exists;
use io::{FileSystems, MetaGraph, SavedModel};
use session::{Feeds, Session};
use status::{Result, invalid, not_found};
use std::collections::BTreeMap;
use std::path::Path;
use tensor::Tensor;

/// A saved model whose nodes are in a graph. [`Loaded::restore`] assigns the values of its variables.
pub struct Loaded {
    folder: String,
    systems: FileSystems,
    meta: MetaGraph,
    saver: Option<Saver>,
}

/// Adds the graph with exactly these tags of the saved model in a folder to a graph.
pub fn load(graph: &Graph, folder: impl AsRef<Path>, tags: &[&str]) -> Result<Loaded> {
    load_on(&FileSystems::local(), graph, folder, tags)
}

/// As [`load`], on these file systems.
pub fn load_on(systems: &FileSystems, graph: &Graph, folder: impl AsRef<Path>, tags: &[&str]) -> Result<Loaded> {
    let folder = to_str(folder.as_ref())?;
    let meta = SavedModel::open(systems, folder)?.find(tags)?.clone();
    let saver = match meta.saver.is_some() {
        true => meta_graph::import(graph, &meta, &MetaImportOptions::default())?,
        // Without a saver there are no variables to be restored.
        false => {
            graph.import(&graph::wire::read_graph(meta.graph.clone())?, &Default::default())?;
            None
        }
    };
    let saver = saver.map(|saver| saver.with_file_systems(systems));
    Ok(Loaded { folder: folder.to_string(), systems: systems.clone(), meta, saver })
}

impl Loaded {
    /// The signatures by name.
    pub fn signatures(&self) -> &BTreeMap<String, Signature> {
        &self.meta.signatures
    }

    /// Restores the variables in a session and runs the main op, if there is one.
    pub fn restore(&self, session: &Session) -> Result<()> {
        let prefix = variables_prefix(&self.folder);
        if let Some(saver) = &self.saver
            && checkpoint_exists(&self.systems, &prefix)?
        {
            saver.restore(session, &prefix)?;
        }
        match self.main_op() {
            Some(op) => session.execute_with(op.as_str(), self.assets()?),
            None => Ok(()),
        }
    }

    /// Calls a signature with values for its inputs by name; gives its outputs by name. An empty name is the default
    /// signature.
    pub fn call(
        &self,
        session: &Session,
        signature: &str,
        inputs: &[(&str, Tensor)],
    ) -> Result<BTreeMap<String, Tensor>> {
        let name = if signature.is_empty() { DEFAULT_SIGNATURE } else { signature };
        let known = || self.meta.signatures.keys().cloned().collect::<Vec<_>>().join(", ");
        let signature = self.meta.signatures.get(name);
        let signature =
            signature.ok_or_else(|| not_found!("unknown signature '{name}'; expected one of {}", known()))?;
        let mut feeds = self.assets()?;
        for (input, value) in inputs {
            let info = signature.inputs.get(*input);
            let info = info.ok_or_else(|| invalid!("signature '{name}' has no input '{input}'"))?;
            feeds = feeds.with_name(tensor_name(info)?, value);
        }
        if let Some(missing) = signature.inputs.keys().find(|key| inputs.iter().all(|(input, _)| input != key)) {
            return Err(invalid!("input '{missing}' of signature '{name}' is missing"));
        }
        let names = signature.outputs.values().map(tensor_name).collect::<Result<Vec<&str>>>()?;
        let values: Vec<Tensor> = session.run_with(names, feeds)?;
        Ok(signature.outputs.keys().cloned().zip(values).collect())
    }

    /// The node to run after the variables were restored.
    fn main_op(&self) -> Option<String> {
        let by_signature = self.meta.signatures.get(INIT_OP_SIGNATURE);
        let by_signature = by_signature.and_then(|signature| signature.outputs.get(INIT_OP_SIGNATURE));
        if let Some(TensorInfo { tensor: TensorName::Dense(name), .. }) = by_signature {
            return Some(name.split(':').next().unwrap_or(name).to_string());
        }
        let by_collection = |key: &str| match self.meta.collections.get(key) {
            Some(Collection::Nodes(names)) => names.first().cloned(),
            _ => None,
        };
        by_collection(MAIN_OP).or_else(|| by_collection("legacy_init_op"))
    }

    /// Feeds with the paths of the files that the model needs.
    fn assets(&self) -> Result<Feeds> {
        let folder = assets_folder(&self.folder);
        let with = |feeds: Feeds, asset: &io::saved_model::Asset| match &asset.tensor.tensor {
            TensorName::Dense(name) => feeds.with_name(name, io::fs::path::join(&folder, &asset.filename)),
            _ => feeds,
        };
        Ok(self.meta.files()?.iter().fold(Feeds::new(), with))
    }
}

fn tensor_name(info: &TensorInfo) -> Result<&str> {
    match &info.tensor {
        TensorName::Dense(name) => Ok(name),
        _ => Err(invalid!("the signature has a sparse tensor, which is not supported")),
    }
}
