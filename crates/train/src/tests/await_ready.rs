//! A worker that waits for the chief is told when the variables have values.

use super::graph;
use crate::await_ready::{self, WaitOutcome};
use crate::{MonitoredTrainingSession, create_global_step_in, replica_device_setter, report_uninitialized_variables};
use graph::{Graph, Node};
use layers::collection::global_variables_initializer;
use layers::{Kind, ScopeOps, Variable};
use session::{LocalCluster, Session, SessionConfig};
use std::time::Duration;

/// A client that polls at this interval never polls twice within a test.
const FOR_EVER: Duration = Duration::from_secs(86_400);

fn counting(worker: usize) -> (Graph, Node) {
    let graph = graph();
    let scope = replica_device_setter(1).worker_device(&format!("/job:worker/task:{worker}")).on(&graph.root());
    let step = create_global_step_in(&scope).unwrap();
    Variable::builder(&scope, "by_reference").shape([2]).kind(Kind::Reference).build();
    let next = step.assign_add(&scope.constant(1i64));
    (graph, next)
}

#[test]
fn a_worker_goes_on_when_the_chief_has_initialized() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
    let targets = cluster.targets("worker");
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let (graph, next) = counting(1);
            let session = MonitoredTrainingSession::new(&graph).master(&targets[1]).is_chief(false);
            let mut session = session.recovery_wait(FOR_EVER).max_wait(FOR_EVER * 3).start().unwrap();
            session.run::<()>(&next).unwrap();
        });
        let (graph, _) = counting(0);
        let chief = MonitoredTrainingSession::new(&graph).master(&targets[0]).start().unwrap();
        worker.join().unwrap();
        drop(chief);
    });
}

#[test]
fn waiting_ends_with_its_time_or_with_the_last_variable() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
    let targets = cluster.targets("worker");
    let (other, _) = counting(1);
    let ready = report_uninitialized_variables(&other);
    let wait = |limit| await_ready::wait(&ready, &targets[1], &SessionConfig::default(), limit).unwrap();
    assert!(matches!(wait(Duration::from_millis(10)), WaitOutcome::TimedOut));
    let (graph, _) = counting(0);
    let session = Session::connect(&targets[0], &graph).unwrap();
    session.execute("global_step/Assign").unwrap();
    assert!(matches!(wait(Duration::from_millis(10)), WaitOutcome::TimedOut), "one has no value yet");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(FOR_EVER));
        session.execute(&global_variables_initializer(&graph)).unwrap();
        assert!(matches!(waiting.join().unwrap(), WaitOutcome::Ready));
    });
}
