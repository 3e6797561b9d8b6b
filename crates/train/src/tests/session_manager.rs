//! Sessions that are made ready, and what is said of those that are not.

use super::{Folder, graph};
use crate::session_manager::{Initialization, Recovery};
use crate::{Saver, SessionManager, report_uninitialized_variables};
use graph::{Graph, Output};
use layers::collection::global_variables_initializer;
use layers::{Initializer, Kind, Variable};
use session::{Session, SessionConfig, feeds};
use status::Code;
use std::time::Duration;

/// Variables of these names, which begin at one, and what reports those without values.
fn model(names: &[&str]) -> (Graph, Vec<Variable>, Output) {
    let graph = graph();
    let make = |name: &&str| {
        let first = Initializer::Value(1f32.into());
        Variable::builder(&graph.root(), name).initializer(first).kind(Kind::Resource).build()
    };
    let variables = names.iter().map(make).collect();
    let ready = report_uninitialized_variables(&graph);
    (graph, variables, ready)
}

/// A checkpoint of a variable `v` that is one.
fn save(folder: &Folder) -> String {
    let (graph, _, _) = model(&["v"]);
    let saver = Saver::new(&graph).unwrap();
    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph)).unwrap();
    saver.save(&session, folder.join("model"), None).unwrap()
}

#[test]
fn a_session_is_recovered_from_a_checkpoint() {
    let folder = Folder::new();
    let (graph, v, ready) = model(&["v"]);
    let saver = Saver::new(&graph).unwrap();
    let manager = SessionManager::new(&graph).ready_op(Some(&ready));
    let recover = |recovery: Recovery<'_>| manager.recover_session("", &SessionConfig::default(), &recovery).unwrap();
    let from_folder = Recovery { saver: Some(&saver), checkpoint_dir: Some(folder.0.as_ref()), ..Recovery::default() };
    let (session, recovered) = recover(from_folder.clone());
    assert!(!recovered);
    let missing = manager.not_ready(&session).unwrap();
    assert_eq!(missing.as_deref(), Some("Variables not initialized: v"));
    let path = save(&folder);
    let from_file = Recovery { checkpoint: Some(path.as_ref()), checkpoint_dir: None, ..from_folder.clone() };
    for recovery in [from_folder.clone(), from_file] {
        let (session, recovered) = recover(recovery);
        assert!(recovered);
        assert_eq!(session.run::<f32>(&v[0]).unwrap(), 1.0);
    }
    // Without a saver nothing is read.
    assert!(!recover(Recovery { saver: None, ..from_folder }).1);
}

#[test]
fn a_checkpoint_may_not_be_enough() {
    let folder = Folder::new();
    let path = save(&folder);
    let (graph, v, ready) = model(&["v", "w"]);
    let saver = Saver::builder(&graph).variables([&v[0]]).build().unwrap();
    let manager = SessionManager::new(&graph).ready_op(Some(&ready));
    let recovery = Recovery { saver: Some(&saver), checkpoint: Some(path.as_ref()), ..Recovery::default() };
    let config = SessionConfig::default();
    assert!(!manager.recover_session("", &config, &recovery).unwrap().1);
    let error = manager.prepare_session("", &config, &recovery, &Initialization::default()).err().unwrap();
    assert_eq!(error.code, Code::FailedPrecondition);
    let wanted = "Init operations did not make model ready.  Init op: None, local_init_op: None, \
                  error: Variables not initialized: w";
    assert_eq!(error.message, wanted);
}

#[test]
fn a_checkpoint_is_waited_for() {
    let folder = Folder::new();
    let (graph, _, ready) = model(&["v"]);
    let saver = Saver::new(&graph).unwrap();
    let manager = SessionManager::new(&graph).ready_op(Some(&ready)).recovery_wait(Duration::from_millis(1));
    let recover = |limit: Duration| {
        let from_folder =
            Recovery { saver: Some(&saver), checkpoint_dir: Some(folder.0.as_ref()), ..Recovery::default() };
        let recovery = Recovery { wait_for_checkpoint: Some(limit), ..from_folder };
        manager.recover_session("", &SessionConfig::default(), &recovery).unwrap().1
    };
    assert!(!recover(Duration::ZERO));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| recover(Duration::from_secs(3600)));
        save(&folder);
        assert!(waiting.join().unwrap());
    });
}

#[test]
fn what_is_not_ready_says_why() {
    let (graph, _, ready) = model(&["v"]);
    let nothing = graph.root().op("NoOp").named("nothing").node();
    let saver = Saver::new(&graph).unwrap();
    let manager = SessionManager::new(&graph).ready_op(Some(&ready));
    let prepare = |manager: &SessionManager, recovery: Recovery<'_>, init: Initialization<'_>| {
        let prepared = manager.prepare_session("", &SessionConfig::default(), &recovery, &init);
        prepared.err().map(|error| error.message).unwrap_or_default()
    };
    let no_init = prepare(&manager, Recovery::default(), Initialization::default());
    assert_eq!(no_init, "Model is not initialized and no init_op or init_fn or local_init_op was given");
    let by_nothing = || Initialization { op: Some(&nothing), ..Initialization::default() };
    let wanted = "Init operations did not make model ready.  Init op: nothing, local_init_op: None, \
                  error: Variables not initialized: v";
    assert_eq!(prepare(&manager, Recovery::default(), by_nothing()), wanted);
    let local = manager.clone().local_init_op(Some(&nothing), feeds! {}).ready_for_local_init_op(Some(&ready));
    let wanted = "Init operations did not make model ready for local_init.  Init op: nothing, \
                  error: Variables not initialized: v";
    assert_eq!(prepare(&local, Recovery::default(), by_nothing()), wanted);
    let both = Recovery {
        saver: Some(&saver),
        checkpoint_dir: Some("folder".as_ref()),
        checkpoint: Some("folder/model".as_ref()),
        ..Recovery::default()
    };
    let wanted = "Can not provide both checkpoint_dir and checkpoint_filename_with_path.";
    assert_eq!(prepare(&manager, both, by_nothing()), wanted);
}
