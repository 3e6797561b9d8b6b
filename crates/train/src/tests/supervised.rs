//! Supervisors of a cluster: a chief and another worker, and a ps that loses its state.

use super::Folder;
use super::log::warnings;
use super::recovery::{Cluster, counting};
use crate::session_manager::is_lost;
use crate::supervisor::SupervisorBuilder;
use crate::{Saver, Supervisor};
use graph::{Graph, Node};
use session::{Session, SessionConfig};
use status::{Code, Error, Result};
use std::sync::Arc;
use std::time::Duration;

fn supervisor(graph: &Graph, worker: usize) -> SupervisorBuilder {
    let supervisor = Supervisor::builder(graph).is_chief(worker == 0).save_model(None).save_summaries(None);
    supervisor.recovery_wait(Duration::from_millis(20))
}

fn step(session: &Session) -> Result<i64> {
    session.run("global_step/Read/ReadVariableOp:0")
}

/// Makes this number of steps in a session of its own. Returns the first value of the step counter.
fn advance(supervisor: &Supervisor, master: &str, next: &Node, times: usize) -> Result<i64> {
    let mut first = 0;
    let mut run = |session: &Arc<Session>| {
        first = step(session)?;
        (0..times).try_for_each(|_| session.execute(next))
    };
    loop {
        match supervisor.managed_session(master, &mut run) {
            // A server of which others do not know yet that it is another one.
            Err(error) if is_lost(&error) => {}
            result => return result.map(|()| first),
        }
    }
}

#[track_caller]
fn check_lost(error: &Error, parts: &[&str]) {
    assert_eq!(error.code, Code::DataLoss, "{error}");
    assert!(parts.iter().all(|part| error.message.contains(part)), "{error}");
}

#[test]
fn another_worker_waits_for_the_chief() {
    let cluster = Cluster::start();
    let ((graph, next), (other, others)) = (counting(0), counting(1));
    let (chief, worker) = (supervisor(&graph, 0).build().unwrap(), supervisor(&other, 1).build().unwrap());
    let config = SessionConfig::default();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| advance(&worker, &cluster.targets[1], &others, 2).unwrap());
        let session = chief.prepare_or_wait_for_session(&cluster.targets[0], &config, None).unwrap();
        assert_eq!(waiting.join().unwrap(), 0);
        session.execute(&next).unwrap();
        assert_eq!(step(&session).unwrap(), 3);
        chief.stop().unwrap();
    });
    let error = worker.start_standard_services(&Arc::new(Session::local(&other))).unwrap_err();
    let wanted = "Only chief supervisor can start standard services. Because only chief supervisors can write events.";
    assert_eq!(error.message, wanted);
}

#[test]
fn a_chief_goes_on_with_what_the_servers_have() {
    let cluster = Cluster::start();
    let (graph, next) = counting(0);
    let chief = supervisor(&graph, 0).build().unwrap();
    assert_eq!(advance(&chief, &cluster.targets[0], &next, 3).unwrap(), 0);
    let (first, lines) = warnings(|| advance(&chief, &cluster.targets[0], &next, 1).unwrap());
    assert_eq!((first, lines), (3, Vec::new()));
}

#[test]
fn a_chief_whose_ps_lost_its_state_says_so() {
    let mut cluster = Cluster::start();
    let (graph, next) = counting(0);
    let chief = supervisor(&graph, 0).build().unwrap();
    assert_eq!(advance(&chief, &cluster.targets[0], &next, 3).unwrap(), 0);
    cluster.lose("ps");
    // Asked again, it does not begin anew either.
    for _ in 0..2 {
        let error = advance(&chief, &cluster.targets[0], &next, 1).unwrap_err();
        check_lost(&error, &["A task lost its state at global step 3", "set logdir", "not initialized: global_step"]);
    }
}

/// It may not have seen how far the model was, but knows that there was one.
#[test]
fn a_ps_may_be_lost_while_steps_are_made() {
    let mut cluster = Cluster::start();
    let (graph, next) = counting(0);
    let chief = supervisor(&graph, 0).build().unwrap();
    let master = cluster.targets[0].clone();
    let failed = chief.managed_session(&master, |session| {
        session.execute(&next)?;
        cluster.lose("ps");
        session.execute(&next)
    });
    assert!(failed.is_err_and(|error| is_lost(&error)));
    let error = advance(&chief, &master, &next, 1).unwrap_err();
    check_lost(&error, &["A task lost its state at global step"]);
}

#[test]
fn a_chief_with_checkpoints_resumes_and_says_so() {
    let (mut cluster, folder) = (Cluster::start(), Folder::new());
    let (graph, next) = counting(0);
    let saver = Arc::new(Saver::new(&graph).unwrap());
    let chief = supervisor(&graph, 0).logdir(&folder.0).saver(saver.clone()).build().unwrap();
    assert_eq!(advance(&chief, &cluster.targets[0], &next, 2).unwrap(), 0);
    cluster.lose("ps");
    let error = advance(&chief, &cluster.targets[0], &next, 1).unwrap_err();
    check_lost(&error, &["at global step 2", &format!("there is no checkpoint in {}", folder.0)]);
    // Another one begins, and leaves a checkpoint of its second step behind.
    let (graph, next) = counting(0);
    let saver = Arc::new(Saver::new(&graph).unwrap());
    let chief = supervisor(&graph, 0).logdir(&folder.0).saver(saver.clone()).build().unwrap();
    let master = cluster.targets[0].clone();
    let work = |session: &Arc<Session>| {
        (0..2).try_for_each(|_| session.execute(&next))?;
        saver.save(session, folder.join("model.ckpt"), 2)?;
        (0..3).try_for_each(|_| session.execute(&next))
    };
    chief.managed_session(&master, work).unwrap();
    cluster.lose("ps");
    let (first, lines) = warnings(|| advance(&chief, &master, &next, 0).unwrap());
    assert_eq!(first, 2);
    assert_eq!(lines, ["The global step went back from 5 to 2: restored from a checkpoint"]);
    // Nothing is lost that was not saved, but it is told.
    cluster.lose("ps");
    let (first, lines) = warnings(|| advance(&chief, &master, &next, 0).unwrap());
    assert_eq!(first, 2);
    assert_eq!(lines, ["A task lost its state: restored from a checkpoint at global step 2"]);
}

#[test]
fn another_worker_is_told_that_the_step_went_back() {
    for has_folder in [false, true] {
        let (mut cluster, folder) = (Cluster::start(), Folder::new());
        let (other, others) = counting(1);
        let worker = supervisor(&other, 1);
        let worker = if has_folder { worker.logdir(&folder.0) } else { worker }.build().unwrap();
        let begin = |cluster: &Cluster| {
            let (graph, next) = counting(0);
            advance(&supervisor(&graph, 0).build().unwrap(), &cluster.targets[0], &next, 0).unwrap();
        };
        begin(&cluster);
        assert_eq!(advance(&worker, &cluster.targets[1], &others, 4).unwrap(), 0);
        cluster.lose("ps");
        // Another chief begins anew.
        begin(&cluster);
        let (result, lines) = warnings(|| advance(&worker, &cluster.targets[1], &others, 1));
        match has_folder {
            false => check_lost(&result.unwrap_err(), &["The global step went back from 4 to 0", "set logdir"]),
            true => {
                assert_eq!(result.unwrap(), 0);
                assert_eq!(lines, ["The global step went back from 4 to 0: a chief restored or initialized it"]);
            }
        }
    }
}

#[test]
fn a_chief_that_begins_may_keep_what_the_servers_have() {
    let cluster = Cluster::start();
    let begin = |keep: bool| {
        let (graph, next) = counting(0);
        let chief = supervisor(&graph, 0).keep_newer_state(keep).build().unwrap();
        warnings(|| advance(&chief, &cluster.targets[0], &next, 3).unwrap())
    };
    assert_eq!(begin(false), (0, Vec::new()));
    assert_eq!(begin(true), (3, Vec::new()));
    let (first, lines) = begin(false);
    assert_eq!((first, lines.len()), (0, 1));
    assert!(
        lines[0].starts_with("The global step went back from 6 to 0: variables that had newer values"),
        "{lines:?}"
    );
}
