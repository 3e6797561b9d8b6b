//! A cluster whose ps is lost and comes back, in one process: what was learned is restored, or its loss is told.

use super::{Folder, graph};
use crate::hooks::Every;
use crate::session_manager::is_lost;
use crate::{
    MonitoredSession, MonitoredTrainingSession, create_global_step_in, latest_checkpoint, replica_device_setter,
};
use graph::{Graph, Node};
use layers::Formulas;
use session::{LocalCluster, Server, ServerOptions, Task, feeds};
use status::{Code, Result, cancelled, invalid};
use std::time::Duration;

/// One ps and two workers.
struct Cluster {
    tasks: LocalCluster,
    targets: Vec<String>,
    again: Vec<Server>,
}

impl Cluster {
    fn start() -> Cluster {
        let tasks = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
        Cluster { targets: tasks.targets("worker"), tasks, again: Vec::new() }
    }

    /// A task goes, and another one comes in its place, without its state.
    fn lose(&mut self, job: &str) {
        self.tasks.stop(job, 0);
        let task = Task { job: job.to_string(), index: 0 };
        self.again.push(Server::start(ServerOptions::new(self.tasks.cluster().clone(), task)).unwrap());
    }
}

/// A graph whose step adds one to its counter, which is on the ps.
fn counting(worker: usize) -> (Graph, Node) {
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
        .recovery_wait(Duration::from_millis(20))
        .max_wait(Duration::from_secs(60))
}

fn run(session: &mut MonitoredSession, next: &Node, times: usize) -> Result<i64> {
    for _ in 0..times {
        session.run::<()>(next, feeds! {})?;
    }
    session.run::<i64>("global_step/Read/ReadVariableOp:0", feeds! {})
}

#[test]
fn a_lost_ps_is_restored_from_the_checkpoint() {
    let (mut cluster, folder) = (Cluster::start(), Folder::new());
    let ((graph, next), (other, others)) = (counting(0), counting(1));
    let chief = session(&cluster, 0, &graph).checkpoint_dir(&folder.0).save_checkpoint(Some(Every::Steps(2)));
    let mut chief = chief.start().unwrap();
    let mut worker = session(&cluster, 1, &other).checkpoint_dir(&folder.0).start().unwrap();
    assert_eq!(run(&mut chief, &next, 4).unwrap(), 4);
    assert_eq!(run(&mut worker, &others, 3).unwrap(), 7);
    cluster.lose("ps");
    // The step is run again, on what the newest checkpoint holds.
    assert_eq!(run(&mut chief, &next, 1).unwrap(), 5);
    assert_eq!(run(&mut worker, &others, 1).unwrap(), 6);
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
fn a_worker_is_told_that_the_step_went_back() {
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
    let mut chief = session(&cluster, 0, &graph).checkpoint_dir(&folder.0).start().unwrap();
    assert_eq!(run(&mut chief, &next, 5).unwrap(), 5);
    // The ps keeps its state; the newest checkpoint is of step 0.
    cluster.lose("worker");
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
