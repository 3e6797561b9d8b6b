//! What may be said of a saver, and of one save.

use super::{Folder, counting};
use crate::saver::{SaveOptions, SaverBuilder};
use crate::{Saver, latest_checkpoint};
use io::{CheckpointState, FileSystems};
use layers::collection::global_variables_initializer;
use session::Session;

/// A saver, and a session with values to save.
fn saver(change: impl FnOnce(SaverBuilder) -> SaverBuilder) -> (Saver, Session) {
    let (graph, _, _) = counting();
    let saver = change(Saver::builder(&graph)).build().unwrap();
    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph)).unwrap();
    (saver, session)
}

fn state(folder: &str) -> CheckpointState {
    CheckpointState::read(&FileSystems::local(), folder, "checkpoint").unwrap().unwrap()
}

#[test]
fn steps_may_have_eight_digits() {
    let folder = Folder::new();
    let (saver, session) = saver(|saver| saver.pad_step_number(true));
    for (step, name) in [(7, "model-00000007"), (123_456_789, "model-123456789")] {
        assert_eq!(saver.save(&session, folder.join("model"), step).unwrap(), folder.join(name));
        assert_eq!(latest_checkpoint(&folder.0).unwrap(), Some(folder.join(name)));
    }
}

#[test]
fn a_folder_with_relative_paths_can_be_moved() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let (saver, session) = saver(|saver| saver.relative_paths(true));
    let old = folder.join("run");
    std::fs::create_dir(&old).unwrap();
    for step in [1, 2] {
        saver.save(&session, format!("{old}/model"), step).unwrap();
    }
    let text = std::fs::read_to_string(format!("{old}/checkpoint")).unwrap();
    let wanted = "model_checkpoint_path: \"model-2\"\nall_model_checkpoint_paths: \"model-1\"\n\
                  all_model_checkpoint_paths: \"model-2\"\n";
    assert!(text.starts_with(wanted), "{text}");
    let new = elsewhere.join("run");
    std::fs::rename(&old, &new).unwrap();
    let latest = latest_checkpoint(&new).unwrap().unwrap();
    assert_eq!(latest, format!("{new}/model-2"));
    saver.restore(&session, &latest).unwrap();
}

#[test]
fn all_checkpoints_may_be_kept() {
    let folder = Folder::new();
    let (saver, session) = saver(|saver| saver.max_to_keep(0));
    for step in 1..=7 {
        saver.save(&session, folder.join("model"), step).unwrap();
    }
    let systems = FileSystems::local();
    assert!((1..=7).all(|step| systems.exists(&folder.join(&format!("model-{step}.index"))).unwrap()));
    // As TensorFlow's saver: it remembers none, and the list names the newest only.
    assert_eq!(saver.last_checkpoints(), Vec::<String>::new());
    assert_eq!(state(&folder.0).all_model_checkpoint_paths, [folder.join("model-7")]);
}

#[test]
fn the_graph_beside_a_checkpoint_may_have_another_name() {
    let folder = Folder::new();
    let (saver, session) = saver(|saver| saver.max_to_keep(1));
    let options = SaveOptions { meta_graph_suffix: "graph".to_string(), ..SaveOptions::default() };
    let exists = |file: &str| FileSystems::local().exists(&folder.join(file)).unwrap();
    saver.save_with(&session, folder.join("model"), 1, &options).unwrap();
    assert!(exists("model-1.graph") && !exists("model-1.meta"));
    // It goes with its checkpoint.
    saver.save_with(&session, folder.join("model"), 2, &options).unwrap();
    assert!(!exists("model-1.graph") && exists("model-2.graph"));
    let without = SaveOptions { write_meta_graph: false, ..options };
    saver.save_with(&session, folder.join("model"), 3, &without).unwrap();
    assert!(exists("model-3.index") && !exists("model-3.graph"));
}

#[test]
fn a_path_must_be_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(b"/tmp/\xff"));
    assert_eq!(latest_checkpoint(path).unwrap_err().message, "path /tmp/\u{fffd} is not valid UTF-8");
}
