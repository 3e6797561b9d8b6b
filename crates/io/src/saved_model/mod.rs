//! Saved models and meta graphs: graphs with their signatures, collections, assets and savers.

mod meta_graph;
mod queue_runner;
mod variable;
mod wire;

pub use meta_graph::{Asset, Collection, MetaGraph, Saver, Signature, TensorInfo, TensorName, read_graph};
pub use queue_runner::QueueRunnerDef;
pub use variable::{SliceDef, VariableDef};

use crate::fs::{FileSystems, path};
use crate::text::text_to_binary;
use bytes::Bytes;
use status::{Result, not_found};

/// A saved model: one or several graphs with tags.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedModel {
    /// The version of the format.
    pub version: i64,
    /// The graphs.
    pub meta_graphs: Vec<MetaGraph>,
}

/// The name of the file of a saved model.
pub const SAVED_MODEL_FILE: &str = "saved_model.pb";
/// The name of the file in text format.
pub const SAVED_MODEL_TEXT_FILE: &str = "saved_model.pbtxt";
/// The version that this crate writes.
const VERSION: i64 = 1;

/// The prefix of the checkpoint with the variables of a saved model.
pub fn variables_prefix(folder: &str) -> String {
    path::join(folder, "variables/variables")
}

/// The folder with the assets of a saved model.
pub fn assets_folder(folder: &str) -> String {
    path::join(folder, "assets")
}

impl SavedModel {
    /// A saved model with these graphs.
    pub fn new(meta_graphs: Vec<MetaGraph>) -> SavedModel {
        SavedModel { version: VERSION, meta_graphs }
    }

    /// Reads the saved model in a file, binary or text, or in the folder that contains it.
    pub fn open(systems: &FileSystems, name: &str) -> Result<SavedModel> {
        if systems.is_dir(name)? {
            let (binary, text) = (path::join(name, SAVED_MODEL_FILE), path::join(name, SAVED_MODEL_TEXT_FILE));
            if systems.exists(&binary)? {
                return SavedModel::open(systems, &binary);
            }
            if systems.exists(&text)? {
                return SavedModel::open(systems, &text);
            }
            return Err(not_found!(
                "Could not find SavedModel .pb or .pbtxt at supplied export directory path: {name}. Check that the \
                 directory exists and that you have the right permissions for accessing it."
            ));
        }
        let bytes = systems.read(name)?;
        match name.ends_with(".pbtxt") {
            true => SavedModel::read(text_to_binary("tensorflow.SavedModel", &String::from_utf8_lossy(&bytes))?),
            false => SavedModel::read(bytes),
        }
    }

    /// Decodes a SavedModel message.
    pub fn read(bytes: Bytes) -> Result<SavedModel> {
        wire::decode_saved_model(bytes)
    }

    /// Encodes a SavedModel message.
    pub fn to_bytes(&self) -> Result<Bytes> {
        wire::encode_saved_model(self)
    }

    /// Writes `saved_model.pb` to a folder, which is created if it does not exist. Variables and assets are separate
    /// files.
    pub fn write(&self, systems: &FileSystems, folder: &str) -> Result<()> {
        systems.create_dirs(folder)?;
        systems.write(&path::join(folder, SAVED_MODEL_FILE), &self.to_bytes()?)
    }

    /// The graph with exactly these tags.
    pub fn find(&self, tags: &[&str]) -> Result<&MetaGraph> {
        let wanted = |graph: &&MetaGraph| {
            graph.tags.len() == tags.len() && tags.iter().all(|tag| graph.tags.iter().any(|known| known == tag))
        };
        self.meta_graphs.iter().find(wanted).ok_or_else(|| {
            not_found!(
                "Could not find meta graph def matching supplied tags: {{ {} }}. To inspect available tag-sets in the \
                 SavedModel, please use the SavedModel CLI: `saved_model_cli`",
                tags.join(" ")
            )
        })
    }
}

/// Copies a file to the assets of a saved model. Returns its name there.
pub fn add_asset(systems: &FileSystems, folder: &str, file: &str) -> Result<String> {
    let (assets, name) = (assets_folder(folder), path::basename(file).to_string());
    systems.create_dirs(&assets)?;
    systems.copy(file, &path::join(&assets, &name), true)?;
    Ok(name)
}
