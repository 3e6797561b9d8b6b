//! A cluster whose ps is lost and comes back, in one process: what was learned is restored, or its loss is told.

use super::log::warnings;
use super::{Folder, graph};
use crate::hooks::Every;
use crate::monitored::{ChiefSessionCreator, SingularMonitoredSession};
use crate::session_manager::is_lost;
use crate::{
    MonitoredSession, MonitoredTrainingSession, create_global_step_in, latest_checkpoint, replica_device_setter,
};
use graph::{Graph, Node};
use layers::collection::LOCAL_VARIABLES;
use layers::{ScopeOps, Variable};
use session::{LocalCluster, Server, ServerOptions, Task};
use status::{Code, Result, cancelled, invalid};
use std::time::Duration;

/// One ps and two workers.
pub(super) struct Cluster {
    tasks: LocalCluster,
    pub targets: Vec<String>,
    again: Vec<Server>,
}

impl Cluster {
    pub fn start() -> Cluster {
        let tasks = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
        Cluster { targets: tasks.targets("worker"), tasks, again: Vec::new() }
    }

    /// A task goes, and another one comes in its place, without its state.
    pub fn lose(&mut self, job: &str) {
        self.tasks.stop(job, 0);
        self.again.retain(|server| server.counters().task().job != job);
        let task = Task { job: job.to_string(), index: 0 };
        self.again.push(Server::start(ServerOptions::new(self.tasks.cluster().clone(), task)).unwrap());
    }
}

/// A graph whose step adds one to its counter, which is on the ps.
pub(super) fn counting(worker: usize) -> (Graph, Node) {
    let graph = graph();
    let scope = replica_device_setter(1).worker_device(&format!("/job:worker/task:{worker}")).on(&graph.root());
    let step = create_global_step_in(&scope).unwrap();
    let next = step.assign_add(&scope.constant(1i64));
    (graph, next)
}

fn session(cluster: &Cluster, worker: usize, graph: &Graph) -> MonitoredTrainingSession {
    MonitoredTrainingSession::new(graph)
        .master(&cluster.targets[worker])
        .is_chief(worker == 0)
        .save_in_background(false)
        .recovery_wait(Duration::from_millis(20))
        .max_wait(Duration::from_secs(60))
}

fn run(session: &mut MonitoredSession, next: &Node, times: usize) -> Result<i64> {
    for _ in 0..times {
        session.run::<()>(next)?;
    }
    session.run::<i64>("global_step/Read/ReadVariableOp:0")
}

#[test]
fn a_lost_ps_is_restored_from_the_checkpoint() {
    let (mut cluster, folder) = (Cluster::start(), Folder::new());
    let ((graph, next), (other, others)) = (counting(0), counting(1));
    let chief = session(&cluster, 0, &graph).checkpoint_dir(&folder.0).save_checkpoint(Every::Steps(2));
    let mut chief = chief.start().unwrap();
    let mut worker = session(&cluster, 1, &other).checkpoint_dir(&folder.0).start().unwrap();
    assert_eq!(run(&mut chief, &next, 5).unwrap(), 5);
    assert_eq!(run(&mut worker, &others, 3).unwrap(), 8);
    cluster.lose("ps");
    // The step is run again, on what the newest checkpoint holds, and both say how far that is.
    let (step, lines) = warnings(|| run(&mut chief, &next, 1).unwrap());
    assert_eq!(step, 5);
    assert_eq!(lines, ["The global step went back from 5 to 4: restored from a checkpoint"]);
    let (step, lines) = warnings(|| run(&mut worker, &others, 1).unwrap());
    assert_eq!(step, 6);
    assert_eq!(lines, ["The global step went back from 8 to 5: restored from a checkpoint"]);
    chief.close().unwrap();
    assert_eq!(latest_checkpoint(&folder.0).unwrap(), Some(folder.join("model.ckpt-6")));
}

#[test]
fn a_lost_ps_without_checkpoints_is_an_error() {
    let mut cluster = Cluster::start();
    let (graph, next) = counting(0);
    let mut chief = session(&cluster, 0, &graph).start().unwrap();
    assert_eq!(run(&mut chief, &next, 3).unwrap(), 3);
    cluster.lose("ps");
    let error = run(&mut chief, &next, 1).unwrap_err();
    assert_eq!(error.code, Code::DataLoss, "{error}");
    assert!(error.message.contains("A task lost its state at global step 3"), "{error}");
    assert!(error.message.contains("Variables not initialized: global_step"), "{error}");
    assert!(error.message.contains("set checkpoint_dir"), "{error}");
}

#[test]
fn a_singular_session_does_not_recover() {
    let (mut cluster, folder) = (Cluster::start(), Folder::new());
    let (graph, next) = counting(0);
    let creator = ChiefSessionCreator::new(&graph).master(&cluster.targets[0]).checkpoint_dir(&folder.0);
    let mut session = SingularMonitoredSession::new(creator, Vec::new()).unwrap();
    assert_eq!(run(&mut session, &next, 3).unwrap(), 3);
    cluster.lose("ps");
    let error = run(&mut session, &next, 1).unwrap_err();
    assert!(is_lost(&error), "{error}");
    assert_eq!(session.last_step(), Some(3));
}

#[test]
fn a_worker_is_told_that_the_step_regressed() {
    let mut cluster = Cluster::start();
    let ((graph, next), (other, others)) = (counting(0), counting(1));
    let mut chief = session(&cluster, 0, &graph).start().unwrap();
    let mut worker = session(&cluster, 1, &other).start().unwrap();
    assert_eq!(run(&mut chief, &next, 3).unwrap(), 3);
    assert_eq!(run(&mut worker, &others, 1).unwrap(), 4);
    cluster.lose("ps");
    // Another chief begins anew.
    drop(chief);
    let (graph, _) = counting(0);
    let _chief = session(&cluster, 0, &graph).start().unwrap();
    let error = run(&mut worker, &others, 1).unwrap_err();
    assert_eq!(error.code, Code::DataLoss, "{error}");
    assert!(error.message.contains("The global step went back from 4 to 0"), "{error}");
}

#[test]
fn a_lost_worker_does_not_set_the_model_back() {
    let (mut cluster, folder) = (Cluster::start(), Folder::new());
    let (graph, next) = counting(0);
    let own = Variable::builder(&graph.root().on("/job:worker/task:0"), "own").shape([1]);
    own.collections(&[LOCAL_VARIABLES]).build();
    let mut chief = session(&cluster, 0, &graph).checkpoint_dir(&folder.0).start().unwrap();
    assert_eq!(run(&mut chief, &next, 5).unwrap(), 5);
    // The ps keeps its state; the newest checkpoint is of step 0. What the worker had for itself is initialized again.
    cluster.lose("worker");
    assert_eq!(run(&mut chief, &next, 1).unwrap(), 6);
}

#[test]
fn a_chief_that_begins_again_says_what_the_servers_lose() {
    let (cluster, folder) = (Cluster::start(), Folder::new());
    let begin = |folder: Option<&str>, keep: bool| {
        let (graph, next) = counting(0);
        let chief = session(&cluster, 0, &graph).keep_newer_state(keep);
        let chief = folder.into_iter().fold(chief, |chief, folder| chief.checkpoint_dir(folder));
        let (chief, lines) = warnings(|| chief.start().unwrap());
        (chief, next, lines)
    };
    let (mut chief, next, lines) = begin(Some(&folder.0), false);
    assert_eq!(lines, Vec::<String>::new(), "nothing is lost at first");
    assert_eq!(run(&mut chief, &next, 5).unwrap(), 5);
    // It ends without a checkpoint: the newest is of step 0.
    drop(chief);
    let (mut chief, next, lines) = begin(Some(&folder.0), true);
    assert_eq!((chief.last_step(), lines), (Some(5), Vec::new()));
    assert_eq!(run(&mut chief, &next, 2).unwrap(), 7);
    drop(chief);
    let regressed = |from: i64, to: i64, how: &str| {
        format!(
            "The global step went back from {from} to {to}: variables that had newer values were {how}; set \
             keep_newer_state to keep them"
        )
    };
    let (chief, _, lines) = begin(Some(&folder.0), false);
    assert_eq!(chief.last_step(), Some(5));
    assert_eq!(lines, [regressed(7, 5, "restored from a checkpoint")]);
    drop(chief);
    let (chief, _, lines) = begin(None, true);
    assert_eq!((chief.last_step(), lines), (Some(5), Vec::new()));
    drop(chief);
    let (chief, _, lines) = begin(None, false);
    assert_eq!(chief.last_step(), Some(0));
    assert_eq!(lines, [regressed(5, 0, "initialized again")]);
    drop(chief);
    // A checkpoint that is newer than what the servers have counts in any case.
    let (chief, _, lines) = begin(Some(&folder.0), true);
    assert_eq!((chief.last_step(), lines), (Some(5), Vec::new()));
}

#[test]
fn a_chief_keeps_what_a_journal_has_kept() {
    let (folder, journal) = (Folder::new(), Folder::new());
    let kept = |options: ServerOptions| {
        let journal = (options.task.job == "ps").then(|| journal.0.clone().into());
        ServerOptions { journal, ..options }
    };
    let tasks = LocalCluster::start_with(&[("ps", 1), ("worker", 1)], kept).unwrap();
    let mut cluster = Cluster { targets: tasks.targets("worker"), tasks, again: Vec::new() };
    let begin = |cluster: &Cluster| {
        let (graph, next) = counting(0);
        let chief = session(cluster, 0, &graph).checkpoint_dir(&folder.0).keep_newer_state(true);
        (chief.start().unwrap(), next)
    };
    let (mut chief, next) = begin(&cluster);
    assert_eq!(run(&mut chief, &next, 5).unwrap(), 5);
    drop(chief);
    cluster.tasks.stop("ps", 0);
    let task = Task { job: "ps".to_string(), index: 0 };
    cluster.again.push(Server::start(kept(ServerOptions::new(cluster.tasks.cluster().clone(), task))).unwrap());
    let (mut chief, next) = begin(&cluster);
    assert_eq!(run(&mut chief, &next, 1).unwrap(), 6);
}

#[test]
fn a_lost_task_is_found_among_the_errors_of_a_tensorflow_master() {
    // What a master of TensorFlow 2.21 said when a ps had been started anew.
    let listed = "\n=====================\n\
        CANCELLED: From /job:worker/replica:0/task:0:\nRecvFromRemoteAsync is cancelled.\n\t \
        [[{{node global_step/Read/ReadVariableOp_S29}}]]\n\
        ABORTED: From /job:ps/replica:0/task:0:\nSession handle is not found: c108f91b9bdd67d2. Possibly this worker \
        (\"/job:ps/replica:0/task:0\") just restarted.\n=====================\n";
    assert!(is_lost(&cancelled!("{listed}")));
    assert!(!is_lost(&cancelled!("Step was cancelled by an explicit call to `Session::Close()`.")));
    assert!(!is_lost(&invalid!("ABORTED: as a name")));
}
