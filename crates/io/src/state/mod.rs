//! The file `checkpoint`: the list of checkpoints in a folder, with the newest.

mod wire;

use crate::bundle::index_path;
use crate::fs::{FileSystems, data_loss, path};
use status::{Code, Result, failed_precondition, invalid};

/// The list of checkpoints of a folder. Names are complete here; in the file they may be relative to the folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckpointState {
    /// The newest checkpoint.
    pub model_checkpoint_path: String,
    /// All kept checkpoints, from the oldest to the newest.
    pub all_model_checkpoint_paths: Vec<String>,
    /// The time of each in seconds since 1970; empty, or one for each checkpoint.
    pub all_model_checkpoint_timestamps: Vec<f64>,
    /// The time of the last checkpoint that is kept permanently.
    pub last_preserved_timestamp: Option<f64>,
}

/// The default name of the file.
pub const STATE_FILE: &str = "checkpoint";

impl CheckpointState {
    /// Reads the list of a folder; none if the folder has none.
    pub fn read(systems: &FileSystems, folder: &str, file: &str) -> Result<Option<CheckpointState>> {
        let name = path::join(folder, file);
        let bytes = match systems.read(&name) {
            Err(error) if error.code == Code::NotFound => return Ok(None),
            read => read?,
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| data_loss(format!("{name} is not text")))?;
        let mut state = wire::parse_state(text).map_err(|error| data_loss(format!("{name}: {}", error.message)))?;
        if state.model_checkpoint_path.is_empty() {
            return Err(invalid!("Invalid checkpoint state loaded from {folder}"));
        }
        for name in state.all_model_checkpoint_paths.iter_mut().chain([&mut state.model_checkpoint_path]) {
            *name = path::join(folder, name);
        }
        Ok(Some(state))
    }

    /// Writes the list of a folder atomically. Names are relative to the folder if `relative` is set, or if the
    /// folder's name is relative itself.
    pub fn write(&self, systems: &FileSystems, folder: &str, file: &str, relative: bool) -> Result<()> {
        let mut state = self.clone();
        if state.all_model_checkpoint_paths.last() != Some(&state.model_checkpoint_path) {
            state.all_model_checkpoint_paths.push(state.model_checkpoint_path.clone());
        }
        let (paths, times) = (&state.all_model_checkpoint_paths, &state.all_model_checkpoint_timestamps);
        if !times.is_empty() && times.len() != paths.len() {
            return Err(invalid!(
                "Checkpoint timestamps, if provided, must match checkpoint paths (got paths {paths:?} and timestamps \
                 {times:?})"
            ));
        }
        let name = path::join(folder, file);
        if name == state.model_checkpoint_path {
            return Err(failed_precondition!(
                "Save path '{name}' conflicts with path used for checkpoint state.  Please use a different save path."
            ));
        }
        for name in state.all_model_checkpoint_paths.iter_mut().chain([&mut state.model_checkpoint_path]) {
            // Names with a scheme count as relative, as in Python, which reads the file.
            let (name_rooted, folder_rooted) = (name.starts_with('/'), folder.starts_with('/'));
            if name_rooted == folder_rooted && (relative || !folder_rooted) {
                *name = path::relative(name, folder);
            }
        }
        systems.write(&name, print(&state).as_bytes())
    }
}

/// The newest checkpoint of a folder, of either format, if its files exist.
pub fn latest_checkpoint(systems: &FileSystems, folder: &str, file: &str) -> Result<Option<String>> {
    let Some(state) = CheckpointState::read(systems, folder, file)? else { return Ok(None) };
    let prefix = state.model_checkpoint_path;
    Ok(checkpoint_exists(systems, &prefix)?.then_some(prefix))
}

/// True if there is a checkpoint with this prefix, of either format.
pub fn checkpoint_exists(systems: &FileSystems, prefix: &str) -> Result<bool> {
    Ok(!systems.glob(&index_path(prefix))?.is_empty() || !systems.glob(prefix)?.is_empty())
}

/// The list in protobuf's text format, as Python writes it.
fn print(state: &CheckpointState) -> String {
    let mut text = format!("model_checkpoint_path: \"{}\"\n", escaped(&state.model_checkpoint_path));
    for path in &state.all_model_checkpoint_paths {
        text += &format!("all_model_checkpoint_paths: \"{}\"\n", escaped(path));
    }
    for time in &state.all_model_checkpoint_timestamps {
        text += &format!("all_model_checkpoint_timestamps: {time:?}\n");
    }
    if let Some(time) = state.last_preserved_timestamp {
        text += &format!("last_preserved_timestamp: {time:?}\n");
    }
    text
}

fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'"' => "\\\"".to_string(),
        b'\\' => "\\\\".to_string(),
        b'\'' => "\\'".to_string(),
        b'\n' => "\\n".to_string(),
        b'\r' => "\\r".to_string(),
        b'\t' => "\\t".to_string(),
        0x20..0x7f => (byte as char).to_string(),
        other => format!("\\{other:03o}"),
    };
    text.bytes().map(escape).collect()
}
