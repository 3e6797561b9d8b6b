//! The ends of steps, which the next run carries.

use crate::tests::net::Net;
use crate::{Master, RemoteWorker, RunGraph, RunStep, SessionConfig, WorkerClient};
use status::Code;
use std::sync::Arc;
use std::time::Duration;

/// Longer than the end of a step waits for the next run.
const LONG: Duration = Duration::from_secs(1);

/// Tasks that accept the ends of steps with a run, and the ps as the worker calls it.
fn cluster() -> (Arc<Net>, Arc<RemoteWorker>) {
    let net = Net::new("worker:0 ps:0");
    net.extend();
    let ps = net.link("worker:0", "ps:0");
    (net, ps)
}

/// Makes the ps know steps, which it forgets when they end.
fn begin(net: &Net, steps: std::ops::Range<u64>) {
    let ps = net.worker("ps:0");
    steps.for_each(|step| ps.offer(step, "key", tensor::Tensor::scalar(1i32)).expect("sent"));
}

fn end(net: &Net, ps: &RemoteWorker, steps: std::ops::Range<u64>) {
    steps.for_each(|step| net.run(ps.cleanup_graph(step)).expect("stored"));
}

/// A run of a graph that the task does not know; it answers with an error.
fn run(net: &Net, ps: &RemoteWorker) -> Code {
    net.run(ps.run_graph(RunGraph { step_id: 1 << 40, ..RunGraph::default() })).expect_err("no graph").code
}

fn wait(net: &Net) {
    net.run(net.worker("worker:0").runtime.sleep(LONG));
}

#[test]
fn the_next_run_carries_the_ends_of_steps() {
    let (net, ps) = cluster();
    begin(&net, 0..3);
    end(&net, &ps, 0..3);
    assert_eq!(net.worker("ps:0").steps_under_way(), 3);
    assert_eq!(run(&net, &ps), Code::Aborted);
    assert_eq!(net.worker("ps:0").steps_under_way(), 1, "only the step of the run is left");
    wait(&net);
    assert_eq!((net.count("cleanup_graph"), net.count("cleanup_graphs")), (0, 0));
}

#[test]
fn a_task_that_does_not_accept_them_gets_single_calls() {
    let net = Net::new("worker:0 ps:0");
    let ps = net.link("worker:0", "ps:0");
    begin(&net, 0..3);
    end(&net, &ps, 0..3);
    assert_eq!((net.worker("ps:0").steps_under_way(), net.count("cleanup_graph")), (0, 3));
}

#[test]
fn without_a_run_they_are_sent_in_few_calls() {
    let (net, ps) = cluster();
    begin(&net, 0..1000);
    end(&net, &ps, 0..1000);
    while net.worker("ps:0").steps_under_way() > 0 {
        wait(&net); // the flush runs on a thread of its own, and sleeps between its calls
    }
    assert!((16..100).contains(&net.count("cleanup_graphs")), "{}", net.count("cleanup_graphs"));
}

#[test]
fn they_survive_a_run_that_is_lost() {
    let (net, ps) = cluster();
    begin(&net, 0..1);
    net.cut("worker:0", "ps:0");
    end(&net, &ps, 0..1);
    assert_eq!(run(&net, &ps), Code::Unavailable);
    assert_eq!(net.worker("ps:0").steps_under_way(), 1);
    net.heal();
    run(&net, &ps);
    assert_eq!(net.worker("ps:0").steps_under_way(), 1, "only the step of the run is left");
}

#[test]
fn the_end_of_a_session_sends_what_is_left() {
    let (net, ps) = cluster();
    begin(&net, 0..200);
    let ends = async {
        for step in 0..200 {
            ps.cleanup_graph(step).await.expect("stored");
        }
        ps.delete_session(String::new()).await
    };
    assert_eq!(net.run(ends), Ok(()));
    assert_eq!(net.worker("ps:0").steps_under_way(), 0);
}

#[test]
fn a_session_with_all_features_runs_and_leaves_no_step_behind() {
    let net = Net::new("worker:0 worker:1 ps:0");
    net.extend();
    let master = Master::new(net.worker("worker:0"));
    let session = net.run(master.create_session(super::toy::parse(super::SUMS), SessionConfig::default()));
    let session = session.expect("a session");
    for _ in 0..20 {
        let step = RunStep { fetches: vec!["d:0".to_string()], ..RunStep::default() };
        let answer = net.run(master.run_step(&session, step)).expect("a step");
        assert_eq!(answer.tensors[0].1.to_scalar::<i32>(), Ok(7));
    }
    net.run(master.close_session(&session)).expect("closed");
    for task in ["worker:1", "ps:0"] {
        while net.worker(task).steps_under_way() > 0 {
            wait(&net);
        }
    }
}
