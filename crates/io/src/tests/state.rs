//! Checkpoint state files.

use super::{Folder, fixture};
use crate::state::{STATE_FILE, checkpoint_exists};
use crate::{CheckpointState, FileSystems, latest_checkpoint};
use status::Code;

fn state(paths: &[&str]) -> CheckpointState {
    CheckpointState {
        model_checkpoint_path: paths.last().unwrap().to_string(),
        all_model_checkpoint_paths: paths.iter().map(|path| path.to_string()).collect(),
        ..CheckpointState::default()
    }
}

#[test]
fn the_state_of_a_folder_is_read() {
    let folder = fixture("checkpoint_state");
    let read = CheckpointState::read(&FileSystems::local(), &folder, STATE_FILE).unwrap().unwrap();
    assert_eq!(read.model_checkpoint_path, format!("{folder}/model-2"));
    let all = ["model-1", "model-2", "quoted \"ä\" \\"].map(|name| format!("{folder}/{name}"));
    assert_eq!(read.all_model_checkpoint_paths, all);
    assert_eq!(read.all_model_checkpoint_timestamps, [1700000000.25, 1700000001.0, 3.0]);
    assert_eq!(read.last_preserved_timestamp, Some(1700000000.125));
    assert_eq!(latest_checkpoint(&FileSystems::local(), &folder, STATE_FILE).unwrap(), None);
    assert_eq!(CheckpointState::read(&FileSystems::local(), "/no/such", STATE_FILE).unwrap(), None);
}

#[test]
fn names_are_written_as_tensorflow_writes_them() {
    let (systems, folder) = (FileSystems::local(), Folder::new());
    let text = || String::from_utf8(systems.read(&folder.join("checkpoint")).unwrap().to_vec()).unwrap();
    let (one, two) = (folder.join("model-1"), folder.join("model-2"));
    let mut written = state(&[&one, &two]);
    written.write(&systems, &folder.0, STATE_FILE, false).unwrap();
    assert_eq!(
        text(),
        format!(
            "model_checkpoint_path: \"{two}\"\nall_model_checkpoint_paths: \"{one}\"\nall_model_checkpoint_paths: \"{two}\"\n"
        )
    );
    written.all_model_checkpoint_timestamps = vec![1700000000.25, 1700000001.0];
    written.last_preserved_timestamp = Some(1700000000.125);
    written.write(&systems, &folder.0, STATE_FILE, true).unwrap();
    let theirs = String::from_utf8(super::bytes("checkpoint_state/checkpoint")).unwrap();
    // The last two lines of that file were written by hand.
    assert_eq!(text().lines().collect::<Vec<_>>(), theirs.lines().take(6).collect::<Vec<_>>());
    assert_eq!(CheckpointState::read(&systems, &folder.0, STATE_FILE).unwrap().unwrap(), written);
    written.all_model_checkpoint_timestamps.pop();
    assert!(written.write(&systems, &folder.0, STATE_FILE, true).is_err());
}

#[test]
fn names_under_a_scheme_are_relative() {
    let systems = FileSystems::local();
    state(&["ram://logs/model-1"]).write(&systems, "ram://logs", STATE_FILE, false).unwrap();
    let text = systems.read("ram://logs/checkpoint").unwrap();
    assert_eq!(&text[..], b"model_checkpoint_path: \"model-1\"\nall_model_checkpoint_paths: \"model-1\"\n");
    assert_eq!(latest_checkpoint(&systems, "ram://logs", STATE_FILE).unwrap(), None);
    systems.write("ram://logs/model-1.index", b"").unwrap();
    assert!(checkpoint_exists(&systems, "ram://logs/model-1").unwrap());
    let latest = latest_checkpoint(&systems, "ram://logs", STATE_FILE).unwrap();
    assert_eq!(latest.as_deref(), Some("ram://logs/model-1"));
}

#[test]
fn damaged_states_are_found_out() {
    let systems = FileSystems::local();
    for text in ["model_checkpoint_path: 7", "nonsense", "model_checkpoint_path: \"", "\u{0}", "x: {{{{{{{"] {
        systems.write("ram://logs/checkpoint", text.as_bytes()).unwrap();
        let error = CheckpointState::read(&systems, "ram://logs", STATE_FILE).unwrap_err();
        assert_eq!(error.code, Code::DataLoss, "{text}");
    }
    systems.write("ram://logs/checkpoint", b"").unwrap();
    let error = CheckpointState::read(&systems, "ram://logs", STATE_FILE).unwrap_err();
    assert_eq!(error.message, "Invalid checkpoint state loaded from ram://logs");
    let deep = "tensor_shape { ".repeat(100_000);
    assert!(crate::text::text_to_binary("tensorflow.TensorProto", &deep).is_err());
}
